#include "tessera/zoo/zoo.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/suggestion.h"
#include "tessera/base/text.h"
#include "tessera/zoo/entries.h"

namespace tessera {
namespace {

/// The most elements that an input or a parameter may have (values: see Graph::add_node). Far
/// beyond any memory, and small enough that sums of bytes and FLOPs over a whole graph stay inside
/// 64 bits.
constexpr int64_t kMaxElements = int64_t{1} << 48;

const ModelInfo& model_called(const std::string& name) {
  std::vector<std::string> known;
  for (const ModelInfo& model : models()) {
    if (model.name == name) return model;
    known.push_back(model.name);
  }
  throw_error<InvalidInput>("[model] '{}' is not a known model{}; known: {}", name,
                            did_you_mean(name, known), joined(known));
}

ModelOptions read_options(const ModelInfo& model, const std::string& spec) {
  const size_t colon = std::min(spec.find(':'), spec.size());
  if (colon + 1 == spec.size())
    throw_error<InvalidInput>("[{}] nothing follows the ':'; write key=value; {}", model.name,
                              legal_keys(model.options));
  return {model.name, colon < spec.size() ? spec.substr(colon + 1) : "", model.options};
}

/// Throws InvalidInput, beginning with `what`, where the shape holds more than kMaxElements.
void check_volume(const Shape& shape, const std::string& what) {
  int64_t volume = 1;
  for (int64_t size : shape) {
    if (size > kMaxElements / volume)
      throw_error<InvalidInput>("{} {} has more than 2^48 elements; use a smaller input", what,
                                to_string(shape));
    volume *= size;
  }
}

void check_input(const ModelInfo& model, const Shape& input) {
  const size_t num_axes = static_cast<size_t>(model.num_spatial) + 2;
  if (input.size() != num_axes)
    throw_error<InvalidInput>(
        "[{}] input {} has {}; give {}: batch x channels x {} spatial, such as {}", model.name,
        to_string(input), counted(std::ssize(input), "axis", "axes"), num_axes, model.num_spatial,
        to_string(model.default_input));
  for (int64_t size : input)
    if (size < 1)
      throw_error<InvalidInput>("[{}] input {}: each size must be at least 1", model.name,
                                to_string(input));
  check_volume(input, fmt::format("[{}] input", model.name));
}

}  // namespace

const std::vector<ModelInfo>& models() {
  static const std::vector<ModelInfo> all{
      alexnet(),       attention_unet2d(),
      cnn(1),          cnn(2),
      cnn(3),          dann(),
      densenet(121),   densenet(161),
      densenet(169),   densenet(201),
      dsn(),           dsn_unet(2),
      dsn_unet(3),     fcn2d(),
      inception_v3(),  mobilenet_v2(),
      resnet(18),      resnet(34),
      resnet(50),      resnet(101),
      resnet(152),     resnet_chain(1),
      resnet_chain(2), resnet_chain(3),
      resnet_v2(110),  resnet_v2(1001),
      resunet2d(),
      unet(2),         unet2d_valid(),
      unet(3),         vgg(11),
      vgg(13),         vgg(16),
      vgg(19),
  };
  return all;
}

const ModelInfo& find_model(const std::string& spec) {
  const std::string name = spec.substr(0, spec.find(':'));
  const ModelInfo& model = model_called(name);
  read_options(model, spec);
  return model;
}

Graph build_model(const std::string& spec, const Shape& input) {
  const ModelInfo& model = find_model(spec);
  const ModelOptions options = read_options(model, spec);
  const Shape& shape = input.empty() ? model.default_input : input;
  check_input(model, shape);
  Graph graph = model.build(options, shape);
  for (const Parameter& parameter : graph.parameters())
    check_volume(parameter.shape,
                 fmt::format("[{}] parameter {} of shape", model.name, parameter.name));
  return graph;
}

}  // namespace tessera

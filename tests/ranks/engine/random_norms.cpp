#include "tests/ranks/engine/random_norms.h"

#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/norm/instance_norm.h"
#include "tessera/ops/norm/layer_norm.h"

namespace tessera {
namespace {

/// A norm over few values multiplies rounding by up to 1 / sqrt(epsilon) where they happen to be
/// close, and several in a row would leave too few digits to compare.
double random_epsilon(Draw& draw, double values) {
  return values < 16 ? draw.real(0.05, 0.2) : draw.one_of<double>({1e-5, 1e-3, 0.1});
}

double pixels(const ValueType& type) {
  double product = 1;
  for (int axis = type.first_spatial(); axis < type.num_axes(); ++axis)
    product *= static_cast<double>(type.axes[axis].size);
  return product;
}

/// Parameters that start elsewhere than at one and zero, where a forgotten weight shows. The
/// builder finds them by their names.
void add_random_affine(Graph& graph, const std::string& name, const Shape& shape) {
  const auto add = [&](const char* suffix, double bound) {
    graph.add_parameter(
        {name + suffix, shape, ParameterRole::kTrainable, {Initial::Kind::kUniform, bound}});
  };
  add(".weight", 1.5);
  add(".bias", 0.3);  // small: with all values positive, the mean after a ReLU would be the bias
}

void add_random_running(Graph& graph, const std::string& name, int64_t channels, Draw& draw) {
  graph.add_parameter(
      {name + ".running_mean", {channels}, ParameterRole::kBuffer, {Initial::Kind::kUniform, 1}});
  graph.add_parameter({name + ".running_var",
                       {channels},
                       ParameterRole::kBuffer,
                       {Initial::Kind::kConstant, draw.real(0.5, 2)}});
}

ValueId random_batch_norm(Graph& graph, ValueId x, const std::string& name, Draw& draw) {
  const ValueType& type = graph.type(x);
  BatchNormOptions options;
  options.epsilon = random_epsilon(draw, static_cast<double>(type.batch()) * pixels(type));
  options.momentum = draw.real(0, 1);
  options.affine = draw.chance(0.7);
  options.running = draw.chance(0.7);
  if (options.running && draw.chance(0.3))
    options.statistics = BatchNormOptions::Statistics::kRunning;
  if (options.affine) add_random_affine(graph, name, {type.channels()});
  if (options.running) add_random_running(graph, name, type.channels(), draw);
  return batch_norm(graph, x, name, options);
}

ValueId random_group_norm(Graph& graph, ValueId x, const std::string& name, Draw& draw) {
  const int64_t channels = graph.type(x).channels();
  std::vector<int64_t> divisors;
  for (int64_t groups = 1; groups <= channels; ++groups)
    if (channels % groups == 0) divisors.push_back(groups);
  GroupNormOptions options;
  options.groups = draw.one_of(divisors);
  options.epsilon =
      random_epsilon(draw, static_cast<double>(channels / options.groups) * pixels(graph.type(x)));
  options.affine = draw.chance(0.7);
  if (options.affine) add_random_affine(graph, name, {channels});
  return group_norm(graph, x, name, options);
}

ValueId random_instance_norm(Graph& graph, ValueId x, const std::string& name, Draw& draw) {
  using Source = InstanceNormOptions::Statistics;
  const ValueType& type = graph.type(x);
  InstanceNormOptions options;
  options.epsilon = random_epsilon(draw, pixels(type));
  options.momentum = draw.real(0, 1);
  options.affine = draw.chance(0.5);
  options.track_running = draw.chance(0.5);
  if (draw.chance(0.3)) options.statistics = Source::kRunning;
  if (options.affine) add_random_affine(graph, name, {type.channels()});
  if (options.track_running || options.statistics == Source::kRunning)
    add_random_running(graph, name, type.channels(), draw);
  return instance_norm(graph, x, name, options);
}

ValueId random_layer_norm(Graph& graph, ValueId x, const std::string& name, Draw& draw) {
  const ValueType& type = graph.type(x);
  LayerNormOptions options;
  double values = static_cast<double>(type.channels());
  Shape shape{type.channels()};
  if (draw.chance(0.5)) {
    options.over = LayerNormOptions::Over::kSample;
    values *= pixels(type);
    shape = type.shape();
    shape.erase(shape.begin());
  }
  options.epsilon = random_epsilon(draw, values);
  options.affine = draw.chance(0.7);
  if (options.affine) add_random_affine(graph, name, shape);
  return layer_norm(graph, x, name, options);
}

}  // namespace

ValueId random_norms(Graph& graph, const std::vector<ValueId>& images, const std::string& name,
                     Draw& draw) {
  const ValueId x = draw.chance(0.7) ? images.back() : draw.one_of(images);
  switch (draw.integer(0, 3)) {
    case 0:
      return random_batch_norm(graph, x, name, draw);
    case 1:
      return random_group_norm(graph, x, name, draw);
    case 2:
      return random_instance_norm(graph, x, name, draw);
    default:
      return random_layer_norm(graph, x, name, draw);
  }
}

}  // namespace tessera

// The networks for digits of "Domain Separation Networks" (2016) and of its baseline without
// private codes, "Domain-Adversarial Training of Neural Networks" (2016): MNIST to MNIST-M.

#include <fmt/format.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/shape/arrangement.h"
#include "tessera/ops/shape/flatten.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/zoo/blocks.h"
#include "tessera/zoo/domains.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr IntegerOption kDigitBase{"base", "channels of the first convolution", 2, 4096};
constexpr IntegerOption kCode{"code", "features of a code", 1, 1 << 16};

/// The decoder begins with a small image of this many pixels along an axis.
constexpr int64_t kSeedSize = 10, kSeedChannels = 3, kDecoderChannels = 16;

ValueId convolve(Graph& graph, ValueId x, const std::string& name, int64_t channels,
                 const NormChoice& norm = {}) {
  x = convolution(
      graph, x, name,
      {.out_channels = channels, .kernel = {5}, .padding = {2}, .bias = norm.leaves_bias()});
  return relu(graph, norm.add(graph, x, name + ".norm"), name + ".relu");
}

ValueId fully_connect(Graph& graph, ValueId x, const std::string& name, int64_t features) {
  return relu(graph, linear(graph, x, name, {.out_features = features}), name + ".relu");
}

struct EncoderSizes {
  int64_t first, second;  // channels of the two convolutions
  int64_t code;           // features
};

/// Two convolutions with pooling, and a linear layer.
ValueId encode_digits(Graph& graph, ValueId x, const std::string& prefix, const EncoderSizes& sizes,
                      const NormChoice& norm) {
  x = halve(graph, convolve(graph, x, prefix + "conv1", sizes.first, norm), prefix + "pool1");
  x = halve(graph, convolve(graph, x, prefix + "conv2", sizes.second, norm), prefix + "pool2");
  return fully_connect(graph, flatten(graph, x), prefix + "fc3", sizes.code);
}

/// Features as a small image, and that as one of `like`'s shape.
ValueId decode_digits(Graph& graph, ValueId code, ValueId like) {
  const Shape shape = graph.type(like).shape();
  ValueId x = fully_connect(graph, code, "decoder.fc1", kSeedChannels * kSeedSize * kSeedSize);
  x = rearrange(graph, x, "decoder.image",
                {.sizes = {shape[0], kSeedChannels, kSeedSize, kSeedSize},
                 .from = {{{0}, {1, 2, 3}}},
                 .to = {{0}, {1}, {2}, {3}}});
  x = convolve(graph, x, "decoder.conv1", kDecoderChannels);
  x = convolve(graph, x, "decoder.conv2", kDecoderChannels);
  x = interpolate(graph, x, "decoder.resize", {.size = {shape.begin() + 2, shape.end()}});
  x = convolve(graph, x, "decoder.conv3", kDecoderChannels);
  return convolution(graph, x, "decoder.conv4",
                     {.out_channels = shape[1], .kernel = {3}, .padding = {1}});
}

DomainParts digit_parts(const ModelOptions& options) {
  const int64_t base = kDigitBase.read(options), code = kCode.read(options);
  const int64_t classes = kClasses.read(options);
  const NormChoice norm = read_any_norm(options);
  DomainParts parts;
  parts.encode = [=](Graph& graph, ValueId image) {
    const ValueId x = encode_digits(graph, image, "shared.", {base, base * 3 / 2, code}, norm);
    return DomainCodes{image, x, x};
  };
  parts.solve = [=](Graph& graph, const DomainCodes& codes) {
    const ValueId x = fully_connect(graph, codes.shared, "head.fc1", code);
    finish_with_cross_entropy(graph, linear(graph, x, "head.fc2", {.out_features = classes}));
  };
  return parts;
}

std::vector<OptionInfo> digit_options() {
  return with_any_norm({kDigitBase.info(32), kCode.info(100), kClasses.info(10)}, "none");
}

void check_digit_sizes(const std::string& model, const Shape& input) {
  check_spatial_sizes(model, input, 4, "; use a larger input");
}

}  // namespace

ModelInfo dsn() {
  return {.name = "dsn",
          .summary =
              "domain separation network for digits: shared and private codes, "
              "reconstructions",
          .default_input = {32, 3, 28, 28},
          .options = with_separation(with_domains(digit_options(), kSeparationGamma)),
          .build = [](const ModelOptions& options, const Shape& input) {
            check_digit_sizes("dsn", input);
            DomainParts parts = digit_parts(options);
            const int64_t base = kDigitBase.read(options), code = kCode.read(options);
            const NormChoice norm = read_any_norm(options);
            parts.encode_private = [=](Graph& graph, ValueId image, const std::string& prefix) {
              return encode_digits(graph, image, prefix, {base, 2 * base, code}, norm);
            };
            parts.decode = [](Graph& graph, ValueId both, const DomainCodes& codes) {
              return decode_digits(graph, both, codes.image);
            };
            return build_domains(options, input, parts);
          }};
}

ModelInfo dann() {
  return {.name = "dann",
          .summary = "digits of several domains by adversarial training: shared codes alone",
          .default_input = {32, 3, 28, 28},
          .options = with_domains(digit_options(), /*gamma=*/1),
          .build = [](const ModelOptions& options, const Shape& input) {
            check_digit_sizes("dann", input);
            return build_domains(options, input, digit_parts(options));
          }};
}

}  // namespace tessera

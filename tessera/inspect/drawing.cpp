#include "tessera/inspect/drawing.h"

#include <algorithm>
#include <string_view>

#include "tessera/inspect/text.h"

namespace tessera {
namespace {

/// Kinds are found by a part of their name, the first rule that fits: new operators of a known sort
/// get their colour without a line here.
struct Rule {
  std::string_view part;
  std::string_view family;
};

constexpr Rule kRules[] = {
    {"transposed", "upsampling"},
    {"interpolate", "upsampling"},
    {"upsample", "upsampling"},
    {"resize", "upsampling"},
    {"conv", "convolution"},
    {"norm", "normalisation"},
    {"drop", "regularisation"},
    {"stochastic_depth", "regularisation"},
    {"rearrange", "shape"},
    {"pad", "shape"},
    {"crop", "shape"},
    {"flatten", "shape"},
    {"reshape", "shape"},
    {"squeeze", "shape"},
    {"permute", "shape"},
    {"transpose", "shape"},
    {"slice", "shape"},
    {"split", "shape"},
    {"roll", "shape"},
    {"linear", "matrix product"},
    {"matmul", "matrix product"},
    {"contraction", "matrix product"},
    {"attention", "matrix product"},
    {"pool", "pooling"},
    {"spatial_", "pooling"},
    {"channel_", "pooling"},
    {"partial_sum", "pooling"},
    {"_parameter", "arithmetic"},
    {"elu", "activation"},
    {"swish", "activation"},
    {"silu", "activation"},
    {"mish", "activation"},
    {"sigmoid", "activation"},
    {"tanh", "activation"},
    {"softmax", "activation"},
    {"softplus", "activation"},
    {"softsign", "activation"},
    {"clamp", "activation"},
    {"concat", "join"},
    {"add", "join"},
    {"sum", "join"},
    {"mul", "join"},
    {"sub", "join"},
    {"div", "join"},
    {"maximum", "join"},
    {"minimum", "join"},
    {"affine", "arithmetic"},
    {"exp", "arithmetic"},
    {"log", "arithmetic"},
    {"sqrt", "arithmetic"},
    {"square", "arithmetic"},
    {"reciprocal", "arithmetic"},
    {"abs", "arithmetic"},
    {"neg", "arithmetic"},
    {"pow", "arithmetic"},
    {"sin", "arithmetic"},
    {"cos", "arithmetic"},
};

const Family& family_named(std::string_view name) {
  return *std::ranges::find(families(), name, &Family::name);
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> list{
      {"convolution", "#dbeafe", "#3b82f6"},
      {"upsampling", "#cffafe", "#0891b2"},
      {"pooling", "#fee2e2", "#dc2626"},
      {"matrix product", "#dcfce7", "#16a34a"},
      {"normalisation", "#ede9fe", "#8b5cf6", true},
      {"activation", "#fef3c7", "#d97706", true},
      {"regularisation", "#fce7f3", "#db2777", true},
      {"arithmetic", "#f7fee7", "#65a30d", true},
      {"join", "#e2e8f0", "#64748b"},
      {"shape", "#f5f5f4", "#a8a29e"},
      {"loss", "#ffe4d5", "#c2410c"},
      {"other", "#ffffff", "#737373"},
  };
  return list;
}

const Family& family_of(const Op& op) {
  if (op.is_loss()) return family_named("loss");
  const std::string kind = op.kind();
  for (const Rule& rule : kRules)
    if (kind.find(rule.part) != std::string::npos) return family_named(rule.family);
  return family_named("other");
}

std::string fill_of(const Node& node, const DrawingOptions& options) {
  const std::string fill = options.colour_of ? options.colour_of(node) : "";
  return fill.empty() ? family_of(*node.op).fill : fill;
}

std::string describe(const Op& op) {
  std::string text = op.kind();
  std::ranges::replace(text, '_', ' ');
  return op.settings().empty() ? text : text + ", " + printable(op.settings());
}

}  // namespace tessera

#include "tessera/zoo/norm_choice.h"

#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/norm/instance_norm.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr IntegerOption kGroups{"groups", "groups of channels, with norm=group; they divide base",
                                1, 4096};

NormChoice norm_called(const std::string& name) {
  using Kind = NormChoice::Kind;
  if (name == "batch") return {Kind::kBatch};
  if (name == "instance") return {Kind::kInstance};
  if (name == "group") return {Kind::kGroup};
  return {Kind::kNone};
}

}  // namespace

ValueId NormChoice::add(Graph& graph, ValueId x, const std::string& name) const {
  switch (kind) {
    case Kind::kNone:
      break;
    case Kind::kBatch:
      return batch_norm(graph, x, name);
    case Kind::kInstance:
      return instance_norm(graph, x, name, {.affine = true});
    case Kind::kGroup:
      return group_norm(graph, x, name, {.groups = groups});
  }
  return x;
}

OptionInfo norm_option(const std::string& default_value) {
  return {"norm", default_value, "normalisation of each convolution; batch or none"};
}

NormChoice read_norm(const ModelOptions& options) {
  return norm_called(options.choice("norm", {"batch", "none"}));
}

std::vector<OptionInfo> with_any_norm(std::vector<OptionInfo> options,
                                      const std::string& default_norm) {
  options.push_back(
      {"norm", default_norm, "normalisation of each convolution; batch, instance, group or none"});
  options.push_back(kGroups.info(8));
  return options;
}

NormChoice read_any_norm(const ModelOptions& options) {
  NormChoice norm = norm_called(options.choice("norm", {"batch", "instance", "group", "none"}));
  norm.groups = kGroups.read(options);
  return norm;
}

}  // namespace tessera

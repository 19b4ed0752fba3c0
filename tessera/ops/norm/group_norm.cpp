#include "tessera/ops/norm/group_norm.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/graph/script.h"
#include "tessera/ops/norm/norm.h"
#include "tessera/ops/norm/sample_norm.h"

namespace tessera {
namespace {

class GroupNorm final : public SampleNorm {
 public:
  explicit GroupNorm(const GroupNormOptions& options)
      : SampleNorm(options.affine ? Affine::kChannel : Affine::kNone, options.epsilon),
        groups_(options.groups) {}

  std::string settings() const override {
    return fmt::format("groups {}{}", groups_, affine() == Affine::kNone ? ", no affine" : "");
  }

 private:
  std::shared_ptr<PlaneNormOp> copy() const override { return std::make_shared<GroupNorm>(*this); }
  std::string norm_kind() const override { return "group_norm"; }
  void check_norm(const ValueType& input) const override {
    check_norm_input(input, epsilon());
    if (groups_ < 1 || input.channels() % groups_ != 0)
      throw_error<InvalidInput>("{} in {}; give a divisor of the channels",
                                counted(input.channels(), "channel"), counted(groups_, "group"));
    check_not_alone(input, input.channels() / groups_ * pixels_per_sample(input),
                    "group of a sample");
  }

  at::Tensor norm_reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    return at::group_norm(with_one_spatial_axis(x), groups_, tensor_or_none(args.parameters, 0),
                          tensor_or_none(args.parameters, 1), epsilon(), /*cudnn_enabled=*/false)
        .view(x.sizes());
  }

  std::optional<std::string> norm_script(const ScriptArgs& args) const override {
    return script_call("torch.group_norm",
                       {args.inputs[0], std::to_string(groups_), script_or_none(args.parameters, 0),
                        script_or_none(args.parameters, 1), script_real(epsilon()),
                        /*cudnn_enabled=*/script_bool(true)});
  }

  int64_t num_groups(int64_t) const override { return groups_; }

  int64_t groups_;
};

}  // namespace

ValueId group_norm(Graph& graph, ValueId x, const std::string& name,
                   const GroupNormOptions& options) {
  std::vector<ParameterId> parameters;
  if (options.affine) parameters = add_affine(graph, name, {channels_or_zero(graph.type(x))});
  return graph.add_node(name, std::make_shared<GroupNorm>(options), {x}, parameters);
}

}  // namespace tessera

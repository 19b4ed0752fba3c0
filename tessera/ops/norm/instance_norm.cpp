#include "tessera/ops/norm/instance_norm.h"

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/norm.h"
#include "tessera/ops/norm/sample_norm.h"

namespace tessera {
namespace {

using Source = InstanceNormOptions::Statistics;

BatchNormOptions by_running(const InstanceNormOptions& options) {
  return {.epsilon = options.epsilon,
          .momentum = options.momentum,
          .statistics = BatchNormOptions::Statistics::kRunning,
          .affine = options.affine};
}

class InstanceNorm final : public SampleNorm, public HasRunningStatistics {
 public:
  explicit InstanceNorm(const InstanceNormOptions& options)
      : SampleNorm(options.affine ? Affine::kChannel : Affine::kNone, options.epsilon),
        options_(options) {}

  std::string settings() const override {
    std::string text = options_.affine ? "affine" : "";
    if (options_.track_running) text += text.empty() ? "tracked" : ", tracked";
    return text;
  }

  std::shared_ptr<const Op> by_running_statistics() const override {
    if (!options_.track_running) return nullptr;
    return plane_norm_op(*batch_norm_op(by_running(options_)))->with_tail(tail());
  }

 private:
  std::shared_ptr<PlaneNormOp> copy() const override {
    return std::make_shared<InstanceNorm>(*this);
  }
  std::string norm_kind() const override { return "instance_norm"; }
  void check_norm(const ValueType& input) const override {
    check_norm_input(input, options_.epsilon);
    check_momentum(options_.momentum);
    check_not_alone(input, pixels_per_sample(input), "channel of a sample");
  }

  at::Tensor norm_reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    return at::instance_norm(with_one_spatial_axis(x), tensor_or_none(args.parameters, 0),
                             tensor_or_none(args.parameters, 1), tensor_or_none(args.buffers, 0),
                             tensor_or_none(args.buffers, 1), /*use_input_stats=*/true,
                             options_.momentum, options_.epsilon, /*cudnn_enabled=*/false)
        .view(x.sizes());
  }

  std::optional<std::string> norm_script(const ScriptArgs& args) const override {
    return script_call(
        "torch.instance_norm",
        {args.inputs[0], script_or_none(args.parameters, 0), script_or_none(args.parameters, 1),
         script_or_none(args.buffers, 0), script_or_none(args.buffers, 1),
         /*use_input_stats=*/options_.track_running ? args.training() : script_bool(true),
         script_real(options_.momentum), script_real(options_.epsilon),
         /*cudnn_enabled=*/script_bool(true)});
  }

  int64_t num_groups(int64_t channels) const override { return channels; }

  /// Means over the batch of the instances' means and unbiased variances.
  void track(const at::Tensor& moments, UpdateArgs& args) const override {
    if (!options_.track_running) return;
    update_running(args.buffers[0], means_in(moments).mean(0), options_.momentum);
    update_running(args.buffers[1], unbiased_variances(moments).mean(0), options_.momentum);
  }

  InstanceNormOptions options_;
};

}  // namespace

ValueId instance_norm(Graph& graph, ValueId x, const std::string& name,
                      const InstanceNormOptions& options) {
  if (options.statistics == Source::kRunning)
    return batch_norm(graph, x, name, by_running(options));
  const int64_t channels = channels_or_zero(graph.type(x));
  std::vector<ParameterId> parameters, buffers;
  if (options.affine) parameters = add_affine(graph, name, {channels});
  if (options.track_running) buffers = add_running(graph, name, channels);
  return graph.add_node(name, std::make_shared<InstanceNorm>(options), {x}, parameters, buffers);
}

}  // namespace tessera

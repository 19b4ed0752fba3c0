#include "tessera/ops/norm/batch_norm.h"

#include "tessera/base/error.h"
#include "tessera/geometry/split.h"
#include "tessera/graph/script.h"
#include "tessera/kernels/norm.h"
#include "tessera/kernels/norm_statistics.h"
#include "tessera/ops/norm/plane_norm_op.h"

namespace tessera {
namespace {

/// Elements of a channel in a box of the value.
double count_per_channel(const Box& box) {
  return box.empty() ? 0 : static_cast<double>(box.volume() / box[1].size());
}

/// The channels of a piece in one half of its statistics: one row, which all samples share.
at::Tensor part(const at::Tensor& channels, const Range& range) {
  return entries(channels, range).unsqueeze(0);
}

class BatchNorm final : public PlaneNormOp, public HasRunningStatistics, public HasBatchParts {
 public:
  explicit BatchNorm(const BatchNormOptions& options)
      : PlaneNormOp({.activation = options.activation}), options_(options) {}

  std::string settings() const override {
    std::string text = uses_batch() ? "" : "running statistics";
    if (uses_batch() && options_.batch_parts > 1)
      text = fmt::format("{} micro-batches", options_.batch_parts);
    if (!options_.affine) text += text.empty() ? "no affine" : ", no affine";
    return text;
  }

  std::shared_ptr<const Op> by_running_statistics() const override {
    if (!options_.running) return nullptr;
    const auto op = std::make_shared<BatchNorm>(*this);
    op->options_.statistics = BatchNormOptions::Statistics::kRunning;
    return op;
  }

  int64_t channels_together(const NodeTypes&) const override { return 1; }
  std::shared_ptr<const Op> by_parts(int64_t parts) const override {
    const auto op = std::make_shared<BatchNorm>(*this);
    op->options_.batch_parts = parts;
    return op;
  }

  Statistics forward_statistics(const NodeTypes& types) const override {
    if (!uses_batch()) return {};
    return {kNumbersPerCell * types.output.channels(), 2 * types.output.channels()};
  }
  int64_t backward_statistics(const NodeTypes& types) const override {
    return uses_batch() ? 2 * types.output.channels() : 0;
  }
  bool weight_gradient_from_statistics() const override { return uses_batch(); }
  bool takes_narrow(Phase, at::DeviceType) const override { return true; }
  int64_t batch_parts() const override { return uses_batch() ? options_.batch_parts : 0; }

  void piece_statistics(KernelArgs& args) const override {
    args.piece_statistics.zero_();
    if (args.out_box.empty()) return;
    plane_moments(args.inputs[0].view(args.out_box),
                  part(cells_of_row(args.piece_statistics), args.out_box[1]));
  }

  void combine_statistics(const std::vector<at::Tensor>& rows,
                          const at::Tensor& combined) const override {
    combine_moments(rows, combined);
  }

  /// Leaves mean and 1 / sqrt(biased variance + epsilon).
  void merge_statistics(MergeArgs& args) const override {
    leave_mean_and_inverse_std(args, options_.epsilon);
  }

  /// Uses mean and unbiased variance of the whole batch, even where micro-batches have their own.
  void update_buffers(UpdateArgs& args) const override {
    if (!options_.running) return;
    update_running_moments(moments_of_batch(args), options_.momentum, args.buffers[0],
                           args.buffers[1]);
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    normalise(args.inputs[0].view(args.out_box), plane_norm(args), added(args),
              args.output.view(args.out_box));
  }

  void piece_grad_statistics(KernelArgs& args) const override {
    sum_gradients(args, args.piece_grad_statistics);
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !wants_grad_x(args)) return;
    const PlaneNorm norm = plane_norm(args);
    at::Tensor mean_dxhat, mean_dxhat_xhat;
    if (uses_batch()) {
      const Range channels = args.out_box[1];
      const at::Tensor sums =
          args.merged_grad_statistics.view({2, -1}).narrow(1, channels.begin, channels.size());
      const at::Tensor means = at::empty(sums.sizes(), sums.options());
      gradient_means(sums, count_of_part(args), norm.weight, means);
      mean_dxhat = means.narrow(0, 0, 1);
      mean_dxhat_xhat = means.narrow(0, 1, 1);
    }
    normalise_gradient(args.inputs[0].view(args.out_box), kept_output(args),
                       args.grad_output.view(args.out_box), norm, mean_dxhat, mean_dxhat_xhat,
                       args.grad_inputs[0].view(args.out_box), grad_added(args));
  }

  /// The piece's own sums, never the merged ones: gradients are summed over the ranks later.
  void weight_gradient(KernelArgs& args) const override {
    const int64_t channels = args.types->output.channels();
    at::Tensor sums = args.piece_grad_statistics;
    if (!sums.defined()) {  // running statistics: no phase before this one needed them
      sums = at::empty({2 * channels}, args.grad_parameters[0].options().dtype(at::kDouble));
      sum_gradients(args, sums);
    }
    const at::Tensor &grad_weight = args.grad_parameters[0], &grad_bias = args.grad_parameters[1];
    grad_weight.add_(sums.narrow(0, channels, channels).to(grad_weight.scalar_type()));
    grad_bias.add_(sums.narrow(0, 0, channels).to(grad_bias.scalar_type()));
  }

 private:
  std::shared_ptr<PlaneNormOp> copy() const override { return std::make_shared<BatchNorm>(*this); }
  std::string norm_kind() const override { return "batch_norm"; }

  void check_norm(const ValueType& input) const override {
    check_norm_input(input, options_.epsilon);
    check_momentum(options_.momentum);
    if (!uses_batch() && !options_.running)
      throw_error<InvalidInput>(
          "running statistics are asked for and not tracked; track them, or use the batch's");
    if (uses_batch() && smallest_part(input) <= 1)
      throw_error<InvalidInput>(
          "input {} has one value per channel{}, which has no variance; use a larger batch or "
          "image, or running statistics",
          to_string(input),
          options_.batch_parts == 1
              ? std::string()
              : fmt::format(" in one of {} micro-batches", options_.batch_parts));
  }

  double norm_flops_per_element() const override {
    return uses_batch() ? 6 : 2;  // sum, distance, square, sum; then x * a + b
  }

  at::Tensor norm_reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const bool apart = uses_batch() && options_.batch_parts > 1;
    const at::Tensor whole = with_one_spatial_axis(x);
    at::Tensor y;
    if (apart) {
      std::vector<at::Tensor> parts;
      for (int64_t part = 0; part < options_.batch_parts; ++part) {
        const Range samples = split(x.size(0), options_.batch_parts, part);
        parts.push_back(
            reference_part(whole.narrow(0, samples.begin, samples.size()), args, at::Tensor(), {}));
      }
      y = at::cat(parts);
      // Only for the running statistics of the whole batch.
      reference_part(whole.detach(), args, tensor_or_none(args.buffers, 0),
                     tensor_or_none(args.buffers, 1));
    } else {
      y = reference_part(whole, args, tensor_or_none(args.buffers, 0),
                         tensor_or_none(args.buffers, 1));
    }
    return y.view(x.sizes());
  }

  /// Of the batch that it is given: there are no micro-batches.
  std::optional<std::string> norm_script(const ScriptArgs& args) const override {
    const std::string by_batch = !uses_batch()       ? script_bool(false)
                                 : !options_.running ? script_bool(true)
                                                     : args.training();
    return script_call(
        "torch.batch_norm",
        {args.inputs[0], script_or_none(args.parameters, 0), script_or_none(args.parameters, 1),
         script_or_none(args.buffers, 0), script_or_none(args.buffers, 1), by_batch,
         script_real(options_.momentum), script_real(options_.epsilon),
         /*cudnn_enabled=*/script_bool(true)});
  }

  at::Tensor reference_part(const at::Tensor& x, const ReferenceArgs& args,
                            const at::Tensor& running_mean, const at::Tensor& running_var) const {
    return at::batch_norm(x, tensor_or_none(args.parameters, 0), tensor_or_none(args.parameters, 1),
                          running_mean, running_var, uses_batch(), options_.momentum,
                          options_.epsilon, /*cudnn_enabled=*/false);
  }

  /// Elements of a channel in the smallest part of the batch.
  int64_t smallest_part(const ValueType& input) const {
    const int64_t batch = input.batch();
    return batch == 0 ? 0 : batch / options_.batch_parts * pixels_per_sample(input);
  }

  /// Elements of a channel in the part of the batch that a piece belongs to.
  double count_of_part(const KernelArgs& args) const {
    Box box = Box::whole(args.types->output.shape());
    for (int64_t part = 0; part < options_.batch_parts; ++part) {
      const Range samples = split(args.types->output.batch(), options_.batch_parts, part);
      if (samples.contains(args.out_box[0].begin)) box[0] = samples;
    }
    return count_per_channel(box);
  }

  bool uses_batch() const { return options_.statistics == BatchNormOptions::Statistics::kBatch; }

  PlaneNorm plane_norm(const KernelArgs& args) const {
    const Range channels = args.out_box[1];
    PlaneNorm norm;
    norm.weight = entries(tensor_or_none(args.parameters, 0), channels);
    norm.bias = entries(tensor_or_none(args.parameters, 1), channels);
    norm.activation = tail().activation;
    if (uses_batch()) {
      norm.mean = part(first_half(args.merged_statistics), channels);
      norm.inverse_std = part(second_half(args.merged_statistics), channels);
    } else {
      norm.mean = part(args.buffers[0], channels).to(at::kDouble);
      norm.inverse_std = (part(args.buffers[1], channels).to(at::kDouble) + options_.epsilon)
                             .sqrt_()
                             .reciprocal_();
    }
    return norm;
  }

  void sum_gradients(const KernelArgs& args, const at::Tensor& sums) const {
    sums.zero_();
    if (args.out_box.empty()) return;
    const Range channels = args.out_box[1];
    plane_gradient_sums(args.inputs[0].view(args.out_box), kept_output(args),
                        args.grad_output.view(args.out_box), plane_norm(args),
                        part(first_half(sums), channels), part(second_half(sums), channels));
  }

  BatchNormOptions options_;
};

}  // namespace

ValueId batch_norm(Graph& graph, ValueId x, const std::string& name,
                   const BatchNormOptions& options) {
  if (options.batch_parts < 1)
    throw_error<InvalidInput>("[batch_norm {}] the batch has {} parts; use at least 1", name,
                              options.batch_parts);
  const int64_t channels = channels_or_zero(graph.type(x));
  std::vector<ParameterId> parameters, buffers;
  if (options.affine) parameters = add_affine(graph, name, {channels});
  if (options.running) buffers = add_running(graph, name, channels);
  return graph.add_node(name, batch_norm_op(options), {x}, parameters, buffers);
}

std::shared_ptr<const Op> batch_norm_op(const BatchNormOptions& options) {
  return std::make_shared<BatchNorm>(options);
}

}  // namespace tessera

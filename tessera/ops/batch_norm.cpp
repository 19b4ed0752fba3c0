#include "tessera/ops/batch_norm.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/ops/batch_norm_kernels.h"

namespace tessera {
namespace {

using Activation = BatchNormOptions::Activation;

/// The entries of `range` in a vector of one entry per channel.
std::vector<double> entries(const at::Tensor& tensor, const Range& range) {
  const at::Tensor part = tensor.narrow(0, range.begin, range.size()).to(at::kDouble).contiguous();
  const double* data = part.data_ptr<double>();
  return {data, data + part.numel()};
}

/// Elements of a channel in a box of the value.
double count_per_channel(const Box& box) {
  return box.empty() ? 0 : static_cast<double>(box.volume() / box[1].size());
}

// All statistics are two numbers per channel: first those of all channels for one, then for the
// other. Channels that a piece does not hold are zero.
std::span<double> first_half(const at::Tensor& statistics) {
  return {statistics.data_ptr<double>(), static_cast<size_t>(statistics.numel() / 2)};
}
std::span<double> second_half(const at::Tensor& statistics) {
  const size_t channels = static_cast<size_t>(statistics.numel() / 2);
  return {statistics.data_ptr<double>() + channels, channels};
}
std::span<double> part(std::span<double> channels, const Range& range) {
  return channels.subspan(range.begin, range.size());
}

class BatchNorm final : public Op {
 public:
  explicit BatchNorm(const BatchNormOptions& options) : options_(options) {}

  const BatchNormOptions& options() const { return options_; }

  std::string kind() const override {
    return options_.activation == Activation::kRelu ? "batch_norm_relu" : "batch_norm";
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    if (input.num_axes() < 2 || input.axes[1].kind != AxisKind::kChannel ||
        input.element != Element::kReal)
      throw_error<InvalidInput>("input {} must be real, with batch and channels first",
                                to_string(input));
    if (!(options_.epsilon >= 0) || !(0 <= options_.momentum && options_.momentum <= 1))
      throw_error<InvalidInput>("epsilon {} must be at least 0, and momentum {} in [0, 1]",
                                options_.epsilon, options_.momentum);
    if (uses_batch() && count_per_channel(Box::whole(input.shape())) == 1)
      throw_error<InvalidInput>(
          "input {} has one value per channel, which has no variance; use a larger batch or image, "
          "or running statistics",
          to_string(input));
    return input;
  }

  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool keeps_input(int) const override { return true; }
  bool cheap_to_recompute() const override { return true; }
  Statistics forward_statistics(const NodeTypes& types) const override { return two(types); }
  Statistics backward_statistics(const NodeTypes& types) const override { return two(types); }
  double flops(const Box& out, const NodeTypes&) const override {
    const double per_element = uses_batch() ? 6 : 2;  // sum, distance, square, sum; then x * a + b
    return per_element * static_cast<double>(out.volume());
  }

  void piece_statistics(KernelArgs& args) const override {
    args.piece_statistics.zero_();
    if (args.out_box.empty()) return;
    const Range channels = args.out_box[1];
    std::vector<Moments> moments(channels.size());
    channel_moments(args.inputs[0].view(args.out_box), moments);
    const std::span<double> mean = part(first_half(args.piece_statistics), channels);
    const std::span<double> m2 = part(second_half(args.piece_statistics), channels);
    for (size_t c = 0; c < moments.size(); ++c) {
      mean[c] = moments[c].mean;
      m2[c] = moments[c].m2;
    }
  }

  /// Leaves mean and 1 / sqrt(biased variance + epsilon).
  void merge_statistics(MergeArgs& args) const override {
    const int64_t channels = args.types->output.channels();
    const at::Tensor unbiased = at::empty({channels}, at::kDouble);
    for (int64_t c = 0; c < channels; ++c) {
      const Moments moments = merge_channel(args, c);
      first_half(args.merged)[c] = moments.mean;
      second_half(args.merged)[c] = 1 / std::sqrt(moments.m2 / moments.count + options_.epsilon);
      unbiased.data_ptr<double>()[c] = moments.m2 / (moments.count - 1);
    }
    update_running(args.buffers[0], args.merged.narrow(0, 0, channels));
    update_running(args.buffers[1], unbiased);
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    normalise(args.inputs[0].view(args.out_box), channel_norm(args),
              args.output.view(args.out_box));
  }

  void piece_grad_statistics(KernelArgs& args) const override {
    sum_gradients(args, args.piece_grad_statistics);
  }

  void merge_grad_statistics(MergeArgs& args) const override {
    args.merged.zero_();
    for (int64_t piece = 0; piece < args.gathered.size(0); ++piece)
      args.merged.add_(args.gathered[piece]);
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const Range channels = args.out_box[1];
    std::vector<double> mean_dy(channels.size()), mean_dy_xhat(channels.size());
    if (uses_batch()) {
      const double count = count_per_channel(Box::whole(args.types->output.shape()));
      for (size_t c = 0; c < mean_dy.size(); ++c) {
        mean_dy[c] = part(first_half(args.merged_grad_statistics), channels)[c] / count;
        mean_dy_xhat[c] = part(second_half(args.merged_grad_statistics), channels)[c] / count;
      }
    }
    normalise_gradient(args.inputs[0].view(args.out_box), args.grad_output.view(args.out_box),
                       channel_norm(args), mean_dy, mean_dy_xhat,
                       args.grad_inputs[0].view(args.out_box));
  }

  /// The piece's own sums, never the merged ones: gradients are summed over the ranks later.
  void weight_gradient(KernelArgs& args) const override {
    const int64_t channels = args.types->output.channels();
    at::Tensor sums = args.piece_grad_statistics;
    if (!sums.defined()) {  // running statistics: no phase before this one needed them
      sums = at::empty({2 * channels}, at::kDouble);
      sum_gradients(args, sums);
    }
    const at::Tensor &grad_weight = args.grad_parameters[0], &grad_bias = args.grad_parameters[1];
    grad_weight.add_(sums.narrow(0, channels, channels).to(grad_weight.scalar_type()));
    grad_bias.add_(sums.narrow(0, 0, channels).to(grad_bias.scalar_type()));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor y = at::batch_norm(
        args.inputs[0], args.parameters[0], args.parameters[1], args.buffers[0], args.buffers[1],
        uses_batch(), options_.momentum, options_.epsilon, /*cudnn_enabled=*/false);
    return options_.activation == Activation::kRelu ? at::relu(y) : y;
  }

 private:
  bool uses_batch() const { return options_.statistics == BatchNormOptions::Statistics::kBatch; }

  Statistics two(const NodeTypes& types) const {
    if (!uses_batch()) return {};
    const int64_t channels = types.output.channels();
    return {2 * channels, 2 * channels};
  }

  static Moments merge_channel(const MergeArgs& args, int64_t channel) {
    const int64_t channels = args.types->output.channels();
    const double* statistics = args.gathered.data_ptr<double>();
    Moments merged;
    for (const Box& box : args.out_boxes) {
      if (box[1].contains(channel))
        merged.merge({count_per_channel(box), statistics[channel], statistics[channels + channel]});
      statistics += 2 * channels;
    }
    return merged;
  }

  void update_running(const at::Tensor& running, const at::Tensor& of_batch) const {
    running.copy_(running.to(at::kDouble) * (1 - options_.momentum) + of_batch * options_.momentum);
  }

  ChannelNorm channel_norm(const KernelArgs& args) const {
    const Range channels = args.out_box[1];
    ChannelNorm norm{{},
                     {},
                     entries(args.parameters[0], channels),
                     entries(args.parameters[1], channels),
                     options_.activation};
    if (uses_batch()) {
      const int64_t all = args.types->output.channels();
      norm.mean = entries(args.merged_statistics, channels);
      norm.inverse_std = entries(args.merged_statistics, channels.shifted(all));
    } else {
      norm.mean = entries(args.buffers[0], channels);
      norm.inverse_std = entries(args.buffers[1], channels);
      for (double& value : norm.inverse_std) value = 1 / std::sqrt(value + options_.epsilon);
    }
    return norm;
  }

  void sum_gradients(const KernelArgs& args, const at::Tensor& sums) const {
    sums.zero_();
    if (args.out_box.empty()) return;
    const Range channels = args.out_box[1];
    channel_gradient_sums(args.inputs[0].view(args.out_box), args.grad_output.view(args.out_box),
                          channel_norm(args), part(first_half(sums), channels),
                          part(second_half(sums), channels));
  }

  BatchNormOptions options_;
};

}  // namespace

ValueId batch_norm(Graph& graph, ValueId x, const std::string& name,
                   const BatchNormOptions& options) {
  const ValueType& type = graph.type(x);
  const Shape shape{type.num_axes() > 1 ? type.channels() : 0};
  const auto add = [&](const std::string& suffix, ParameterRole role, double value) {
    return graph.add_parameter({name + suffix, shape, role, {Initial::Kind::kConstant, value}});
  };
  const std::vector<ParameterId> parameters{add(".weight", ParameterRole::kTrainable, 1),
                                            add(".bias", ParameterRole::kTrainable, 0)};
  const std::vector<ParameterId> buffers{add(".running_mean", ParameterRole::kBuffer, 0),
                                         add(".running_var", ParameterRole::kBuffer, 1)};
  return graph.add_node(name, std::make_shared<BatchNorm>(options), {x}, parameters, buffers);
}

bool is_plain_batch_norm(const Op& op) {
  const auto* norm = dynamic_cast<const BatchNorm*>(&op);
  return norm != nullptr && norm->options().activation == Activation::kNone;
}

std::shared_ptr<const Op> with_relu(const Op& batch_norm) {
  TESSERA_CHECK(is_plain_batch_norm(batch_norm), "{} is no plain batch norm", batch_norm.kind());
  BatchNormOptions options = dynamic_cast<const BatchNorm&>(batch_norm).options();
  options.activation = Activation::kRelu;
  return std::make_shared<BatchNorm>(options);
}

std::shared_ptr<const Op> with_running_statistics(const Op& op) {
  const auto* norm = dynamic_cast<const BatchNorm*>(&op);
  if (!norm) return nullptr;
  BatchNormOptions options = norm->options();
  options.statistics = BatchNormOptions::Statistics::kRunning;
  return std::make_shared<BatchNorm>(options);
}

}  // namespace tessera

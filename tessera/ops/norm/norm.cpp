#include "tessera/ops/norm/norm.h"

#include "tessera/base/error.h"
#include "tessera/kernels/norm_statistics.h"

namespace tessera {

std::shared_ptr<const Op> with_running_statistics(const Op& op) {
  const auto* norm = dynamic_cast<const HasRunningStatistics*>(&op);
  return norm ? norm->by_running_statistics() : nullptr;
}

std::shared_ptr<const Op> with_batch_parts(const Op& op, int64_t parts) {
  const auto* norm = dynamic_cast<const HasBatchParts*>(&op);
  return norm != nullptr && op.batch_parts() > 0 ? norm->by_parts(parts) : nullptr;
}

void update_running(const at::Tensor& running, const at::Tensor& now, double momentum) {
  running.copy_(running.to(at::kDouble) * (1 - momentum) + now * momentum);
}

void leave_mean_and_inverse_std(MergeArgs& args, double epsilon) {
  mean_and_inverse_std(cells_of_row(args.row), epsilon, first_half(args.merged),
                       second_half(args.merged));
}

at::Tensor moments_of_batch(const UpdateArgs& args) {
  if (args.rows.size() == 1) return cells_of_row(args.rows[0]);
  const at::Tensor combined = at::empty_like(args.rows[0]);
  combine_moments(args.rows, combined);
  return cells_of_row(combined);
}

at::Tensor unbiased_variances(const at::Tensor& moments) {
  return squares_in(moments) / (counts_in(moments) - 1);
}

void check_norm_input(const ValueType& input, double epsilon) {
  if (input.num_axes() < 2 || input.axes[0].kind != AxisKind::kBatch ||
      input.axes[1].kind != AxisKind::kChannel || input.element != Element::kReal)
    throw_error<InvalidInput>("input {} must be real, with batch and channels first",
                              to_string(input));
  if (!(epsilon >= 0)) throw_error<InvalidInput>("epsilon {} must be at least 0", epsilon);
}

void check_momentum(double momentum) {
  if (!(0 <= momentum && momentum <= 1))
    throw_error<InvalidInput>("momentum {} must be in [0, 1]", momentum);
}

void check_not_alone(const ValueType& input, int64_t num_values, const std::string& of) {
  if (num_values == 1)
    throw_error<InvalidInput>(
        "input {} has one value per {}, which has no variance; normalise over more, or leave it "
        "out",
        to_string(input), of);
}

std::vector<ParameterId> add_affine(Graph& graph, const std::string& name, const Shape& shape) {
  const auto add = [&](const std::string& suffix, double value) {
    return graph.add_parameter(
        {name + suffix, shape, ParameterRole::kTrainable, {Initial::Kind::kConstant, value}});
  };
  const ParameterId weight = add(".weight", 1);
  return {weight, add(".bias", 0)};
}

std::vector<ParameterId> add_running(Graph& graph, const std::string& name, int64_t channels) {
  const auto add = [&](const std::string& suffix, double value) {
    return graph.add_parameter(
        {name + suffix, {channels}, ParameterRole::kBuffer, {Initial::Kind::kConstant, value}});
  };
  const ParameterId mean = add(".running_mean", 0);
  return {mean, add(".running_var", 1)};
}

int64_t pixels_per_sample(const ValueType& type) {
  int64_t pixels = 1;
  for (const Axis& axis : type.axes)
    if (axis.kind == AxisKind::kSpatial) pixels *= axis.size;
  return pixels;
}

int64_t channels_or_zero(const ValueType& type) {
  return type.num_axes() > 1 ? type.channels() : 0;
}

at::Tensor tensor_or_none(const std::vector<at::Tensor>& tensors, size_t index) {
  return tensors.empty() ? at::Tensor() : tensors[index];
}

at::Tensor with_one_spatial_axis(const at::Tensor& image) {
  return image.dim() > 3 ? image.flatten(2) : image;
}

at::Tensor entries(const at::Tensor& vector, const Range& range) {
  return vector.defined() ? vector.narrow(0, range.begin, range.size()) : at::Tensor();
}

at::Tensor first_half(const at::Tensor& statistics) {
  return statistics.narrow(0, 0, statistics.numel() / 2);
}

at::Tensor second_half(const at::Tensor& statistics) {
  return statistics.narrow(0, statistics.numel() / 2, statistics.numel() / 2);
}

}  // namespace tessera

#pragma once
// What the normalisations share besides their loops (kernels/norm.h): the check of their input,
// their parameters and buffers by PyTorch's names, and running statistics, which a network that is
// applied uses in place of those of its input.

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/kernels/norm.h"

namespace tessera {

/// A normalisation that can use running statistics in place of those of its input.
class HasRunningStatistics {
 public:
  virtual ~HasRunningStatistics() = default;
  /// The operator that uses them, with the same parameters and buffers; null where none are
  /// tracked.
  virtual std::shared_ptr<const Op> by_running_statistics() const = 0;
};

/// A normalisation in which groups of neighbouring channels have statistics of their own, so that
/// its phases of forward run on some of the groups alone.
class NormalisesChannels {
 public:
  virtual ~NormalisesChannels() = default;
  /// How many channels share statistics.
  virtual int64_t channels_together(const NodeTypes& types) const = 0;
};

/// The operator that normalises by the running statistics; null where `op` is not a normalisation
/// or tracks none: then it stays as it is, as in PyTorch's eval mode.
std::shared_ptr<const Op> with_running_statistics(const Op& op);

/// A normalisation by statistics of the batch, which can be those of each micro-batch instead.
class HasBatchParts {
 public:
  virtual ~HasBatchParts() = default;
  /// The operator that normalises each of `parts` micro-batches by its own statistics.
  virtual std::shared_ptr<const Op> by_parts(int64_t parts) const = 0;
};

/// The operator that normalises each of `parts` micro-batches by its own statistics; null where
/// `op` does not normalise by statistics of the batch. Running statistics stay those of the whole
/// batch.
std::shared_ptr<const Op> with_batch_parts(const Op& op, int64_t parts);

/// running = (1 - momentum) * running + momentum * now, in float64.
void update_running(const at::Tensor& running, const at::Tensor& now, double momentum);

/// Leaves the mean of each cell, then 1 / sqrt(biased variance + epsilon) of each, from a row of
/// moments.
void leave_mean_and_inverse_std(MergeArgs& args, double epsilon);

/// The moments of each cell over all micro-batches, cells x 3, from their rows.
at::Tensor moments_of_batch(const UpdateArgs& args);

/// Σ (x - mean)² / (count - 1) of each cell.
at::Tensor unbiased_variances(const at::Tensor& moments);

/// Throws InvalidInput unless the input is batch x channels x space in real numbers and epsilon is
/// not negative.
void check_norm_input(const ValueType& input, double epsilon);

/// Throws InvalidInput unless it is in [0, 1].
void check_momentum(double momentum);

/// Throws InvalidInput where statistics are over one value; `of` says of what there is only one.
/// Its variance is zero, so the output would be the bias whatever the input, and a ReLU after it
/// would decide by rounding alone.
void check_not_alone(const ValueType& input, int64_t num_values, const std::string& of);

/// name.weight of ones and name.bias of zeros.
std::vector<ParameterId> add_affine(Graph& graph, const std::string& name, const Shape& shape);

/// name.running_mean of zeros and name.running_var of ones.
std::vector<ParameterId> add_running(Graph& graph, const std::string& name, int64_t channels);

/// Elements of one channel of one sample.
int64_t pixels_per_sample(const ValueType& type);

/// Channels of a value that need not be an image: an operator's check comes after its parameters.
int64_t channels_or_zero(const ValueType& type);

/// The tensor, or an undefined one where there are none: a normalisation without weights or
/// buffers.
at::Tensor tensor_or_none(const std::vector<at::Tensor>& tensors, size_t index);

/// The image with one spatial axis, for oracles; the result is to be viewed as the image again.
/// LibTorch 1.13 gives wrong gradients for the instance norm of one sample where the gradient lies
/// channels-last, which three axes cannot.
at::Tensor with_one_spatial_axis(const at::Tensor& image);

/// The entries of `range` in a vector: a view, which may be undefined.
at::Tensor entries(const at::Tensor& vector, const Range& range);

/// Two numbers for each of several things: all first numbers, then all second ones.
at::Tensor first_half(const at::Tensor& statistics);
at::Tensor second_half(const at::Tensor& statistics);

}  // namespace tessera

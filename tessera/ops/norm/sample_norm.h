#pragma once
// Normalisation of each sample on its own, by groups of neighbouring channels: mean and variance
// are those of the group's channels over all of space. Group norm, instance norm (each channel a
// group) and layer norm over the sample (one group) are this operator and differ in names, weights
// and oracle.
//
// Statistics are the moments of each sample and group of the batch, with count zero where a piece
// holds nothing of it. What is merged from them means nothing for samples that are not in the
// micro-batch. Backward reads the input and the merged statistics; the output is recomputed where
// it is wanted, not kept.

#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/kernels/norm.h"
#include "tessera/ops/norm/plane_norm_op.h"

namespace tessera {

class SampleNorm : public PlaneNormOp {
 public:
  /// What one entry of weight and bias belongs to.
  enum class Affine {
    kNone,     // there are no parameters
    kChannel,  // shape C
    kElement,  // shape C x space: each piece uses its slice
  };

  int64_t channels_together(const NodeTypes& types) const override {
    return types.output.channels() / num_groups(types.output.channels());
  }
  Statistics forward_statistics(const NodeTypes& types) const override;
  int64_t backward_statistics(const NodeTypes& types) const override;
  bool weight_gradient_from_statistics() const override { return affine_ != Affine::kElement; }
  bool takes_narrow(Phase, at::DeviceType) const override { return affine_ != Affine::kElement; }
  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes& types,
                             const Numbers& numbers) const override;

  void piece_statistics(KernelArgs& args) const override;
  void combine_statistics(const std::vector<at::Tensor>& rows,
                          const at::Tensor& combined) const override;
  void merge_statistics(MergeArgs& args) const override;
  void update_buffers(UpdateArgs& args) const override;
  void forward(KernelArgs& args) const override;
  void piece_grad_statistics(KernelArgs& args) const override;
  void input_gradient(KernelArgs& args) const override;
  void weight_gradient(KernelArgs& args) const override;

 protected:
  SampleNorm(Affine affine, double epsilon) : affine_(affine), epsilon_(epsilon) {}

  Affine affine() const { return affine_; }
  double epsilon() const { return epsilon_; }

  /// Not where each element has a weight: those come after the pass.
  bool takes_tail() const override { return affine_ != Affine::kElement; }
  double norm_flops_per_element() const override { return 6; }  // as batch norm

  /// Divides the number of channels.
  virtual int64_t num_groups(int64_t channels) const = 0;

  /// Gets the moments of all samples and groups, samples x groups x 3, to update running statistics
  /// from.
  virtual void track(const at::Tensor&, UpdateArgs&) const {}

 private:
  struct Cells;

  Cells cells_of(const ValueType& type) const;
  PlaneNorm plane_norm(const KernelArgs& args) const;
  at::Tensor gradient_after_norm(const KernelArgs& args) const;
  void sum_gradients(const KernelArgs& args, const at::Tensor& sums) const;
  void add_element_gradients(const KernelArgs& args) const;

  Affine affine_;
  double epsilon_;
};

}  // namespace tessera

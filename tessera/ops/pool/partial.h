#pragma once
// Sums over a space that is cut: each piece adds up its own cell, and only the partial sums travel.
// The lowering puts these operators in the place of sums and means over all of space (global
// pooling) and of flatten + linear:
//
//   spatial_mean      x ── PartialSum(1 / volume) ── [N, C, parts] ── SumParts ── [N, C, 1...]
//   flatten, linear   x ── PartialLinear ─────────── [N, O, parts] ── SumParts + bias ── [N, O]
//
// Part j of the axis in the middle (AxisKind::kPart) belongs to cell j, a box of spatial ranges;
// together the cells cover the space once. A cell may be empty: its part is 0. Parts are added in
// order, whoever computed them. Kernels are right for any range of parts, but needed() of more than
// one part is the hull of their cells: cut the axis at every unit.

#include <string>
#include <vector>

#include "tessera/graph/op.h"

namespace tessera {

/// [N, C, space...] → [N, C, parts]: the sum over each cell, in double, times `scale`.
class PartialSum final : public Op {
 public:
  /// `cells`: one box per part, with one range per spatial axis.
  PartialSum(std::vector<Box> cells, double scale);

  std::string kind() const override { return "partial_sum"; }
  ValueType infer_type(std::span<const ValueType> inputs) const override;
  Box needed(int input, const Box& out, const NodeTypes& types) const override;
  double flops(const Box& out, const NodeTypes& types) const override;
  void forward(KernelArgs& args) const override;
  void input_gradient(KernelArgs& args) const override;
  at::Tensor reference(const ReferenceArgs& args) const override;

 private:
  std::vector<Box> cells_;
  double scale_;
};

/// [N, C, space...] → [N, O, parts]: the product of each cell with its columns of a linear layer's
/// weight [O, C * space], the layer's only parameter here (its bias is SumParts').
class PartialLinear final : public Op {
 public:
  PartialLinear(std::vector<Box> cells, Shape spatial_shape, int64_t out_features);

  std::string kind() const override { return "partial_linear"; }
  ValueType infer_type(std::span<const ValueType> inputs) const override;
  Box needed(int input, const Box& out, const NodeTypes& types) const override;
  bool keeps_input(int) const override { return true; }
  double flops(const Box& out, const NodeTypes& types) const override;
  double elements_moved(const Box& out, const NodeTypes& types) const override;
  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes& types,
                             const Numbers& numbers) const override;
  void forward(KernelArgs& args) const override;
  void input_gradient(KernelArgs& args) const override;
  void weight_gradient(KernelArgs& args) const override;
  at::Tensor reference(const ReferenceArgs& args) const override;

 private:
  /// The columns of a weight (or of its gradient) that belong to a cell, as a view [O, C, cell...].
  at::Tensor columns(const at::Tensor& weight, const Box& cell) const;

  std::vector<Box> cells_;
  Shape spatial_shape_;
  int64_t out_features_;
};

/// [N, C, parts] → [N, C]: the sum over parts in their order, plus a bias [C] where the node has a
/// parameter. With `kept` axes, each of size 1, → [N, C, 1...].
class SumParts final : public Op {
 public:
  explicit SumParts(std::vector<Axis> kept = {});

  std::string kind() const override { return "sum_parts"; }
  ValueType infer_type(std::span<const ValueType> inputs) const override;
  Box needed(int input, const Box& out, const NodeTypes& types) const override;
  double flops(const Box& out, const NodeTypes& types) const override;
  void forward(KernelArgs& args) const override;
  void input_gradient(KernelArgs& args) const override;
  void weight_gradient(KernelArgs& args) const override;
  at::Tensor reference(const ReferenceArgs& args) const override;

 private:
  std::vector<Axis> kept_;
};

}  // namespace tessera

#include "tessera/ops/pool/partial.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/kernels/scratch.h"
#include "tessera/kernels/space_sum.h"

namespace tessera {
namespace {

/// The type of partial results with `channels` channels, one per cell.
ValueType partial_type(const ValueType& input, const std::vector<Box>& cells, int64_t channels) {
  if (input.num_axes() < 3 || input.first_spatial() != 2 || input.element != Element::kReal)
    throw_error<InvalidInput>("input {} must be real, with batch, channels and 1 to 3 spatial axes",
                              to_string(input));
  Box space;
  for (int axis = 2; axis < input.num_axes(); ++axis) space.push_back({0, input.axes[axis].size});
  for (const Box& cell : cells)
    if (cell.num_axes() != space.num_axes() || !space.contains(cell))
      throw_error<InvalidInput>("cell {} does not lie in the space {} of the input",
                                to_string(cell), to_string(space));
  ValueType output;
  output.axes = {input.axes[0],
                 {AxisKind::kChannel, channels, -1, {}},
                 {AxisKind::kPart, static_cast<int64_t>(cells.size()), -1, {}}};
  return output;
}

/// All channels of `cell` for some entries of the batch.
Box cell_box(const Range& batch, const NodeTypes& types, const Box& cell) {
  Box box{batch, {0, types.inputs[0].channels()}};
  for (int axis = 0; axis < cell.num_axes(); ++axis) box.push_back(cell[axis]);
  return box;
}

/// What the parts of `out` read: the hull of their cells.
Box hull_of_cells(const std::vector<Box>& cells, const Box& out, const NodeTypes& types) {
  Box all = cells[out[2].begin];
  for (int64_t part = out[2].begin + 1; part < out[2].end; ++part) all = hull(all, cells[part]);
  return cell_box(out[0], types, all);
}

/// The result or gradient [N, channels] of one part, as a view.
at::Tensor part_of(const Operand& operand, int64_t part) {
  return operand.tensor.select(2, part - operand.box[2].begin);
}

at::Tensor slice_cell(at::Tensor tensor, const Box& cell) {
  for (int axis = 0; axis < cell.num_axes(); ++axis)
    tensor = tensor.narrow(2 + axis, cell[axis].begin, cell[axis].size());
  return tensor;
}

/// All axes but the first as one.
at::Tensor as_matrix(const at::Tensor& tensor, Scratch& scratch) {
  return scratch.contiguous(tensor).flatten(1);
}

/// Stores gradient_of(part), which broadcasts to the part's cell, for all parts of the piece.
template <class GradientOf>
void store_input_gradient(KernelArgs& args, const std::vector<Box>& cells, GradientOf gradient_of) {
  const Operand& grad = args.grad_inputs[0];
  if (!grad.tensor.defined()) return;
  const Range parts = args.out_box[2];
  // The hull of several cells may hold more than they do.
  if (parts.size() > 1) grad.tensor.zero_();
  for (int64_t part = parts.begin; part < parts.end; ++part) {
    const Box box = cell_box(args.out_box[0], *args.types, cells[part]);
    if (!box.empty()) grad.view(box).copy_(gradient_of(part, box));
  }
}

}  // namespace

PartialSum::PartialSum(std::vector<Box> cells, double scale)
    : cells_(std::move(cells)), scale_(scale) {}

ValueType PartialSum::infer_type(std::span<const ValueType> inputs) const {
  return partial_type(inputs[0], cells_, inputs[0].channels());
}

Box PartialSum::needed(int, const Box& out, const NodeTypes& types) const {
  return hull_of_cells(cells_, out, types);
}

double PartialSum::flops(const Box& out, const NodeTypes& types) const {
  return static_cast<double>(needed(0, out, types).volume());
}

void PartialSum::forward(KernelArgs& args) const {
  for (int64_t part = args.out_box[2].begin; part < args.out_box[2].end; ++part) {
    const at::Tensor result = part_of({args.output.view(args.out_box), args.out_box}, part);
    const Box box = cell_box(args.out_box[0], *args.types, cells_[part]);
    if (box.empty()) {
      result.zero_();
      continue;
    }
    sum_space(args.inputs[0].view(box), scale_, result);
  }
}

void PartialSum::input_gradient(KernelArgs& args) const {
  store_input_gradient(args, cells_, [&](int64_t part, const Box& box) {
    at::Tensor grad = part_of(args.grad_output, part) * scale_;
    while (grad.dim() < box.num_axes()) grad = grad.unsqueeze(-1);
    return grad;
  });
}

at::Tensor PartialSum::reference(const ReferenceArgs& args) const {
  std::vector<at::Tensor> sums;
  for (const Box& cell : cells_)
    sums.push_back(slice_cell(args.inputs[0], cell).flatten(2).sum(2) * scale_);
  return at::stack(sums, 2);
}

PartialLinear::PartialLinear(std::vector<Box> cells, Shape spatial_shape, int64_t out_features)
    : cells_(std::move(cells)),
      spatial_shape_(std::move(spatial_shape)),
      out_features_(out_features) {}

ValueType PartialLinear::infer_type(std::span<const ValueType> inputs) const {
  const ValueType output = partial_type(inputs[0], cells_, out_features_);
  const Shape shape = inputs[0].shape();
  if (Shape(shape.begin() + 2, shape.end()) != spatial_shape_)
    throw_error<InvalidInput>("input {} does not have the space {} of the weight",
                              to_string(inputs[0]), to_string(spatial_shape_));
  return output;
}

Box PartialLinear::needed(int, const Box& out, const NodeTypes& types) const {
  return hull_of_cells(cells_, out, types);
}

double PartialLinear::flops(const Box& out, const NodeTypes& types) const {
  return 2.0 * static_cast<double>(needed(0, out, types).volume() * out[1].size());
}

at::Tensor PartialLinear::columns(const at::Tensor& weight, const Box& cell) const {
  Shape shape{out_features_, -1};
  shape.insert(shape.end(), spatial_shape_.begin(), spatial_shape_.end());
  return slice_cell(weight.view(shape), cell);
}

double PartialLinear::elements_moved(const Box& out, const NodeTypes& types) const {
  double weights = 0;
  for (int64_t part = out[2].begin; part < out[2].end; ++part)
    weights += static_cast<double>(cell_box({0, out_features_}, types, cells_[part]).volume());
  return Op::elements_moved(out, types) + weights;
}

/// Matrices of one part after the other: of the cell's pixels, and of its weights.
ScratchBytes PartialLinear::scratch_bytes(Phase phase, const Box& out, const NodeTypes& types,
                                          const Numbers& numbers) const {
  const bool forward = phase == Phase::kForward || phase == Phase::kRecompute;
  if (!forward && phase != Phase::kInputGradient && phase != Phase::kWeightGradient) return 0;
  int64_t most = 0;
  for (int64_t part = out[2].begin; part < out[2].end; ++part) {
    const int64_t pixels = cell_box(out[0], types, cells_[part]).volume();
    const int64_t weights = cell_box({0, out_features_}, types, cells_[part]).volume();
    if (pixels > 0)
      most = std::max(
          most, Scratch::bytes_of(pixels, numbers.type) + Scratch::bytes_of(weights, numbers.type));
  }
  return most;
}

void PartialLinear::forward(KernelArgs& args) const {
  for (int64_t part = args.out_box[2].begin; part < args.out_box[2].end; ++part) {
    const at::Tensor result = part_of({args.output.view(args.out_box), args.out_box}, part);
    const Box box = cell_box(args.out_box[0], *args.types, cells_[part]);
    if (box.empty()) {
      result.zero_();
      continue;
    }
    Scratch scratch(args.scratch);
    const at::Tensor weight = as_matrix(columns(args.parameters[0], cells_[part]), scratch);
    result.copy_(at::mm(as_matrix(args.inputs[0].view(box), scratch), weight.t()));
  }
}

void PartialLinear::input_gradient(KernelArgs& args) const {
  store_input_gradient(args, cells_, [&](int64_t part, const Box& box) {
    Scratch scratch(args.scratch);
    const at::Tensor weight = as_matrix(columns(args.parameters[0], cells_[part]), scratch);
    const at::Tensor grad = part_of(args.grad_output, part);
    at::Tensor product = scratch.take({grad.size(0), weight.size(1)}, grad.scalar_type());
    return at::mm_out(product, grad, weight).view(box.shape());
  });
}

void PartialLinear::weight_gradient(KernelArgs& args) const {
  for (int64_t part = args.out_box[2].begin; part < args.out_box[2].end; ++part) {
    const Box box = cell_box(args.out_box[0], *args.types, cells_[part]);
    if (box.empty()) continue;
    Scratch scratch(args.scratch);
    const at::Tensor x = as_matrix(args.inputs[0].view(box), scratch);
    at::Tensor product = scratch.take({out_features_, x.size(1)}, x.scalar_type());
    at::mm_out(product, part_of(args.grad_output, part).t(), x);
    at::Tensor grad = columns(args.grad_parameters[0], cells_[part]);
    grad.add_(product.view(grad.sizes()));
  }
}

at::Tensor PartialLinear::reference(const ReferenceArgs& args) const {
  std::vector<at::Tensor> products;
  for (const Box& cell : cells_) {
    const at::Tensor weight = columns(args.parameters[0], cell).flatten(1);
    products.push_back(at::matmul(slice_cell(args.inputs[0], cell).flatten(1), weight.t()));
  }
  return at::stack(products, 2);
}

SumParts::SumParts(std::vector<Axis> kept) : kept_(std::move(kept)) {
  for (const Axis& axis : kept_)
    TESSERA_CHECK(axis.size == 1, "an axis of size {} is kept", axis.size);
}

ValueType SumParts::infer_type(std::span<const ValueType> inputs) const {
  const ValueType& input = inputs[0];
  if (input.num_axes() != 3 || input.axes[2].kind != AxisKind::kPart)
    throw_error<InvalidInput>("input {} is not batch x channels x parts", to_string(input));
  ValueType output = input;
  output.axes.resize(2);
  output.axes.insert(output.axes.end(), kept_.begin(), kept_.end());
  return output;
}

Box SumParts::needed(int, const Box& out, const NodeTypes& types) const {
  const int64_t num_parts = out.empty() ? 0 : types.inputs[0].axes[2].size;
  return {out[0], out[1], {0, num_parts}};
}

double SumParts::flops(const Box& out, const NodeTypes& types) const {
  return static_cast<double>(needed(0, out, types).volume());
}

void SumParts::forward(KernelArgs& args) const {
  if (args.out_box.empty()) return;
  const at::Tensor parts = args.inputs[0].view(needed(0, args.out_box, *args.types));
  at::Tensor sum = at::zeros({parts.size(0), parts.size(1)}, parts.options().dtype(at::kDouble));
  for (int64_t part = 0; part < parts.size(2); ++part) sum.add_(parts.select(2, part));
  if (!args.parameters.empty()) sum.add_(args.parameters[0]);
  args.output.view(args.out_box).copy_(sum.view(args.out_box.shape()));
}

void SumParts::input_gradient(KernelArgs& args) const {
  const at::Tensor& grad = args.grad_inputs[0].tensor;
  if (args.out_box.empty() || !grad.defined()) return;
  grad.copy_(args.grad_output.tensor.reshape({grad.size(0), grad.size(1), 1}));
}

void SumParts::weight_gradient(KernelArgs& args) const {
  if (args.out_box.empty()) return;
  args.grad_parameters[0].add_(args.grad_output.tensor.flatten(1).sum(0));
}

at::Tensor SumParts::reference(const ReferenceArgs& args) const {
  at::Tensor sum = args.inputs[0].sum(2);
  if (!args.parameters.empty()) sum = sum + args.parameters[0];
  for (size_t axis = 0; axis < kept_.size(); ++axis) sum = sum.unsqueeze(-1);
  return sum;
}

}  // namespace tessera

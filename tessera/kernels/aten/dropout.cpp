#include "tessera/kernels/dropout.h"

#include <cmath>

#include "tessera/kernels/aten/tensors.h"

namespace tessera {
namespace {

/// Tensors of int64 as words of 64 bits without a sign, with what random numbers are made of: what
/// does not fit into a word is lost in both.
struct Words {
  at::Tensor bits;
};

at::Scalar as_signed(uint64_t word) { return static_cast<int64_t>(word); }

Words operator+(const Words& a, const Words& b) { return {a.bits + b.bits}; }
Words operator*(const Words& a, uint64_t b) { return {a.bits * as_signed(b)}; }
Words operator^(const Words& a, const Words& b) { return {at::bitwise_xor(a.bits, b.bits)}; }
/// The shift repeats the sign, which the mask takes away.
Words operator>>(const Words& a, int places) {
  return {at::bitwise_right_shift(a.bits, as_signed(static_cast<uint64_t>(places)))
              .bitwise_and_(as_signed(~uint64_t{0} >> places))};
}

/// The index of every element's draw. Axes along which all have the same one have size 1.
at::Tensor draw_indices(const DropoutMask& mask, const at::Tensor& beside) {
  const int64_t num_axes = beside.dim();
  at::Tensor index = at::full(std::vector<int64_t>(static_cast<size_t>(num_axes), 1),
                              mask.first_index, beside.options().dtype(at::kLong));
  for (int64_t axis = 0; axis < num_axes; ++axis) {
    const int64_t stride = mask.strides[static_cast<size_t>(axis)];
    if (stride == 0) continue;
    index = index +
            aten::along_axis(aten::count_up(0, beside.size(axis), beside) * stride, axis, num_axes);
  }
  return index;
}

Words state_of(const DropoutMask& mask, const at::Tensor& beside) {
  if (mask.state.defined()) return {mask.state};
  return {at::full({}, as_signed(mask.key.state()), beside.options().dtype(at::kLong))};
}

}  // namespace

namespace aten {

void apply_dropout(const DropoutMask& mask, const Fate& kept, const Fate& dropped,
                   const at::Tensor& from, const at::Tensor& to) {
  // RandomKey::uniform() is the upper 53 bits of a draw times 2^-53.
  const Words draws =
      RandomKey::bits_at(state_of(mask, from), Words{draw_indices(mask, from)}) >> 11;
  const at::Tensor stays =
      draws.bits.ge(static_cast<int64_t>(std::ceil(mask.probability * 0x1p53)));
  const auto by_fate = [&](double if_kept, double if_dropped) {
    return at::where(stays, at::scalar_tensor(if_kept, from.options()),
                     at::scalar_tensor(if_dropped, from.options()));
  };
  at::Tensor result = to;
  at::mul_out(result, from, by_fate(kept.factor, dropped.factor));
  if (kept.offset != 0 || dropped.offset != 0) result.add_(by_fate(kept.offset, dropped.offset));
}

}  // namespace aten

const DropoutKernels DropoutKernels::kAten{.apply_dropout = aten::apply_dropout};

}  // namespace tessera

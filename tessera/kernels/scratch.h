#pragma once
// Tensors in the scratch of a kernel, one after the other. Whoever asks for the bytes adds up
// bytes_of() for the tensors that it will take, in any order.
//
// Example:
//   Scratch scratch(args.scratch);  // of Scratch::bytes_of(n, at::kFloat) bytes
//   at::Tensor copy = scratch.take({n}, at::kFloat);

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

class Scratch {
 public:
  /// Bytes, contiguous; their memory begins at a multiple of kAlignment.
  explicit Scratch(at::Tensor bytes) : bytes_(std::move(bytes)) {}

  /// What a tensor takes. Whole vectors, so that the next tensor begins with one.
  static int64_t bytes_of(int64_t numel, at::ScalarType type) {
    const int64_t bytes = numel * static_cast<int64_t>(c10::elementSize(type));
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  /// A contiguous tensor that holds anything.
  at::Tensor take(at::IntArrayRef shape, at::ScalarType type) {
    const int64_t numel = c10::multiply_integers(shape);
    const int64_t end = used_ + bytes_of(numel, type);
    TESSERA_CHECK(bytes_.defined() && end <= bytes_.numel(),
                  "a kernel takes {} bytes of scratch and asked for {}", end,
                  bytes_.defined() ? bytes_.numel() : 0);
    const int64_t size = numel * static_cast<int64_t>(c10::elementSize(type));
    const at::Tensor taken = bytes_.narrow(0, used_, size).view(type).view(shape);
    used_ = end;
    return taken;
  }

  /// The tensor, or where it is not contiguous a copy.
  at::Tensor contiguous(const at::Tensor& tensor) {
    if (tensor.is_contiguous()) return tensor;
    return take(tensor.sizes(), tensor.scalar_type()).copy_(tensor);
  }

 private:
  static constexpr int64_t kAlignment = 64;

  at::Tensor bytes_;
  int64_t used_ = 0;
};

}  // namespace tessera

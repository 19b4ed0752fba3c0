#pragma once
// The numbers of a tensor as kernels see them in memory.

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <type_traits>

#include "tessera/kernels/cpu/bf16.h"

namespace tessera {

template <class T>
T* data_of(const at::Tensor& tensor) {
  if constexpr (std::is_same_v<std::remove_const_t<T>, Bf16>)
    return reinterpret_cast<T*>(tensor.data_ptr<at::BFloat16>());
  else
    return tensor.data_ptr<std::remove_const_t<T>>();
}

/// Calls run.template operator()<T>() with float, double or Bf16.
template <class Run>
void on_numbers_of(const at::Tensor& tensor, Run&& run) {
  if (tensor.scalar_type() == at::kBFloat16) return run.template operator()<Bf16>();
  AT_DISPATCH_FLOATING_TYPES(tensor.scalar_type(), "a kernel",
                             [&] { run.template operator()<scalar_t>(); });
}

}  // namespace tessera

#pragma once
// How a call of a kernel finds its implementation. The functions of a family are a struct of
// pointers, a table, and there may be several: kCpu has loops of our own, which read and write the
// memory of the CPU; kAten says the same by ATen's functions alone, which run wherever their
// tensors lie; kCuda points to kernels of our own for GPUs, or nowhere in a build without CUDA. A
// Kernel is the call, which takes the table for the device of its tensors. So a family runs on a
// new kind of device before anybody has written loops for it, and loops that are written are tested
// against a second opinion. A family whose numbers take no loop of ours has kAten alone.
//
//   struct SoftmaxKernels {
//     void (*softmax_channels)(SoftmaxForm form, const at::Tensor& x, const at::Tensor& y);
//     static const SoftmaxKernels kCpu;          // defined in cpu/softmax.cpp
//     static const SoftmaxKernels kAten;         // in aten/softmax.cpp
//     static const SoftmaxKernels* const kCuda;  // in cuda/softmax.cpp and cuda/no_cuda.cpp
//   };
//   inline constexpr Kernel<&SoftmaxKernels::softmax_channels> softmax_channels;
//
//   softmax_channels(SoftmaxForm::kSoftmax, x, y);

#include <ATen/ATen.h>

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/kernels/library_kernels.h"

namespace tessera {

/// The device on which an argument lies; none where it is no tensor. Operands of a loss lie where
/// the scores do.
template <class Argument>
std::optional<at::Device> where_is(const Argument& argument) {
  if constexpr (std::is_same_v<Argument, at::Tensor>) {
    if (argument.defined()) return argument.device();
  } else if constexpr (std::is_same_v<Argument, std::vector<at::Tensor>>) {
    if (!argument.empty()) return argument.front().device();
  } else if constexpr (requires { argument.scores; }) {
    return argument.scores.device();
  }
  return std::nullopt;
}

template <auto Member>
class Kernel;

template <class Family, class Result, class... Arguments, Result (*Family::*Member)(Arguments...)>
class Kernel<Member> {
 public:
  Result operator()(Arguments... arguments) const {
    std::optional<at::Device> device;
    ((device = device ? device : where_is<std::remove_cvref_t<Arguments>>(arguments)), ...);
    TESSERA_CHECK(device, "a kernel was called without a tensor");
    return (table_of(*device).*Member)(std::forward<Arguments>(arguments)...);
  }

 private:
  static const Family& table_of(const at::Device& device) {
    if constexpr (requires { Family::kCuda; })
      if (device.is_cuda() && Family::kCuda != nullptr && !LibraryKernels::are_used())
        return *Family::kCuda;
    if constexpr (!requires { Family::kCpu; }) {
      return Family::kAten;
    } else {
      if constexpr (requires { Family::kAten; })
        if (!device.is_cpu() || LibraryKernels::are_used()) return Family::kAten;
      TESSERA_CHECK(device.is_cpu(), "there are no kernels for tensors on {}", device.str());
      return Family::kCpu;
    }
  }
};

}  // namespace tessera

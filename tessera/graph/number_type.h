#pragma once
// The types of real numbers in a run. `real` is that of values and their gradients. Where it has
// only two bytes, what such numbers are too coarse for is kept in float32: weights and their
// gradients, what optimisers keep, outputs and targets. Statistics and losses are float64 in any
// run.
//
// Example:
//   wide(at::kBFloat16);  // at::kFloat
//   wide(at::kDouble);    // at::kDouble

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <string>

namespace tessera {

/// Whether numbers of the type are only stored: arithmetic is that of wide(real).
inline bool is_narrow(at::ScalarType real) { return real == at::kBFloat16; }

inline at::ScalarType wide(at::ScalarType real) { return is_narrow(real) ? at::kFloat : real; }

/// The numbers that kernels work on, and where: on the CPU, unless said otherwise.
struct Numbers {
  // NOLINTNEXTLINE(google-explicit-constructor): a type alone says enough on the CPU
  Numbers(at::ScalarType type, at::DeviceType device = at::kCPU) : type(type), device(device) {}

  at::ScalarType type;
  at::DeviceType device;
};

/// As users write it.
inline std::string number_name(at::ScalarType real) {
  if (is_narrow(real)) return "bf16";
  return real == at::kDouble ? "float64" : "float32";
}

}  // namespace tessera

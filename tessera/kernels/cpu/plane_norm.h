#pragma once
// What the loops of normalisation by planes share: the numbers of a plane, the activation, and the
// gradient before it, for registers of numbers.

#include <cmath>
#include <vector>

#include "tessera/kernels/cpu/tensor_numbers.h"
#include "tessera/kernels/cpu/vector.h"
#include "tessera/kernels/norm.h"

namespace tessera {

/// The place of a plane's number among those of samples x cells.
struct PlaneIndex {
  int64_t cells_of_sample = 0;  // 0: samples share them
  int64_t channels_of_cell = 1;

  /// Of tensors that begin with the axes samples x cells, for an image of so many channels.
  PlaneIndex(const at::Tensor& table, int64_t channels)
      : cells_of_sample(table.size(0) > 1 ? table.size(1) : 0),
        channels_of_cell(channels / table.size(1)) {}

  size_t operator()(int64_t n, int64_t c) const {
    return static_cast<size_t>(n * cells_of_sample + c / channels_of_cell);
  }
};

/// As float64; of all channels `otherwise` where there is no table.
std::vector<double> numbers_of_channels(const at::Tensor& table, int64_t channels,
                                        double otherwise);

/// A PlaneNorm's numbers for the loops: float64, and a weight and a bias in any case.
struct PlaneNumbers {
  PlaneIndex cell;
  const double *mean, *inverse_std;  // at the cell
  std::vector<double> weight, bias;  // of the channels

  PlaneNumbers(const PlaneNorm& norm, int64_t channels);
};

/// The numbers that the loops use for one plane, rounded to the tensors' type once.
template <class T>
struct Affine {
  T scale, shift;

  Affine(const PlaneNumbers& norm, int64_t n, int64_t c) {
    const size_t cell = norm.cell(n, c), channel = static_cast<size_t>(c);
    const double exact_scale = norm.weight[channel] * norm.inverse_std[cell];
    scale = static_cast<T>(exact_scale);
    shift = static_cast<T>(norm.bias[channel] - norm.mean[cell] * exact_scale);
  }

  /// The values before what is added and the activation. Backward decides by them which elements a
  /// ReLU let through, so it must not be left to the compiler whether to contract them.
  template <class Register>
  Register operator()(const Register& x) const {
#ifdef FP_FAST_FMA
    Register values;
#pragma GCC unroll 16
    for (size_t lane = 0; lane < sizeof(Register) / sizeof(T); ++lane)
      values[lane] = std::fma(x[lane], scale, shift);
    return values;
#else
    return x * scale + shift;
#endif
  }
};

template <NormActivation kActivation, class Register>
inline Register activate(const Register& values) {
  if constexpr (kActivation == NormActivation::kNone) return values;
  const Register positive = values <= 0 ? Register{} : values;  // NaN passes, as in PyTorch
  if constexpr (kActivation == NormActivation::kRelu) return positive;
  return positive >= 6 ? Register{} + 6 : positive;
}

/// By what backward knows which elements of the gradient the activation let through.
enum class PassedBy {
  kInput,   // the value before it, which is computed again
  kOutput,  // what it gave
};

/// The gradient before the activation, at a place in rows of x, y and their gradient. `load_from`
/// reads a register there.
template <NormActivation kActivation, PassedBy kPassedBy, class T, class Register, class Load>
inline Register gradient_before(const Affine<Number<T>>& affine, const Register& x, const T* y,
                                const T* grad_y, Load&& load_from) {
  const Register gradient = load_from(grad_y);
  if constexpr (kActivation == NormActivation::kNone) return gradient;
  const Register value = kPassedBy == PassedBy::kInput ? affine(x) : load_from(y);
  const Register let_through = value <= 0 ? Register{} : gradient;
  if constexpr (kActivation == NormActivation::kRelu) return let_through;
  return value >= 6 ? Register{} : let_through;
}

/// Calls run.template operator()<activation, by what, scalar type>().
template <class Run>
void dispatch_backward(const at::Tensor& x, const at::Tensor& y, NormActivation activation,
                       Run&& run) {
  on_numbers_of(x, [&]<class T>() {
    const auto run_with = [&]<NormActivation kActivation>() {
      if (y.defined())
        run.template operator()<kActivation, PassedBy::kOutput, T>();
      else
        run.template operator()<kActivation, PassedBy::kInput, T>();
    };
    if (activation == NormActivation::kRelu)
      return run_with.template operator()<NormActivation::kRelu>();
    if (activation == NormActivation::kRelu6)
      return run_with.template operator()<NormActivation::kRelu6>();
    run.template operator()<NormActivation::kNone, PassedBy::kInput, T>();
  });
}

}  // namespace tessera

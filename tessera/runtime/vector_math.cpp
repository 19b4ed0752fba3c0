#include "tessera/runtime/vector_math.h"

#include <ATen/ATen.h>

#include <mutex>

namespace tessera {
namespace {

/// What ATen gives to MKL's vector functions, and what may join them.
void call_each(at::ScalarType real) {
  using Function = at::Tensor (*)(const at::Tensor&);
  const at::Tensor half = at::full({1}, 0.5, at::TensorOptions(real));
  for (Function function :
       {Function{at::acos},  Function{at::asin},  Function{at::atan},   Function{at::ceil},
        Function{at::cos},   Function{at::cosh},  Function{at::erf},    Function{at::erfc},
        Function{at::exp},   Function{at::expm1}, Function{at::floor},  Function{at::lgamma},
        Function{at::log},   Function{at::log10}, Function{at::log1p},  Function{at::log2},
        Function{at::round}, Function{at::rsqrt}, Function{at::erfinv}, Function{at::sigmoid},
        Function{at::sin},   Function{at::sinh},  Function{at::sqrt},   Function{at::tan},
        Function{at::tanh},  Function{at::trunc}})
    function(half);
  at::pow(half, half);
}

}  // namespace

void settle_vector_math() {
  static std::once_flag done;
  std::call_once(done, [] {
    call_each(at::kFloat);
    call_each(at::kDouble);
  });
}

}  // namespace tessera

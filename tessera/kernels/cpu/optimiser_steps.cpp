#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/kernels/cpu/elementary.h"
#include "tessera/kernels/optimise.h"
#include "tessera/kernels/steps_one_by_one.h"

namespace tessera {
namespace {

/// A number, or a register of them: the same operations, and so the same bits.
template <class V, class T>
V get(const T* from) {
  return *reinterpret_cast<const V*>(from);
}
template <class V, class T>
void put(T* to, V value) {
  *reinterpret_cast<V*>(to) = value;
}

/// Calls update.template operator()<V>(index) for all elements, a register at a time.
template <class T, class Update>
void in_registers(int64_t count, const Update& update) {
  constexpr int64_t kNumbersAtOnce = 1 << 15;
  at::parallel_for(0, count, kNumbersAtOnce, [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + kLanes<T> <= end; i += kLanes<T>) update.template operator()<Vector<T>>(i);
    for (; i < end; ++i) update.template operator()<T>(i);
  });
}

template <class T>
void sgd(const SgdStep& step, int64_t count, T* parameter, const T* gradient, T* velocity) {
  const T rate = static_cast<T>(step.learning_rate), momentum = static_cast<T>(step.momentum),
          decay = static_cast<T>(step.weight_decay);
  in_registers<T>(count, [&]<class V>(int64_t i) {
    const V p = get<V>(parameter + i);
    V g = get<V>(gradient + i);
    if (decay != 0) g += decay * p;
    if (velocity != nullptr) {
      const V v = momentum * get<V>(velocity + i) + g;
      put(velocity + i, v);
      g = step.nesterov ? g + momentum * v : v;
    }
    put(parameter + i, V(p - rate * g));
  });
}

template <class T>
void adam(const AdamStep& step, int64_t count, T* parameter, const T* gradient, T* mean,
          T* square) {
  const double correction1 = 1 - std::pow(step.beta1, step.steps);
  const double correction2 = 1 - std::pow(step.beta2, step.steps);
  const T rate = static_cast<T>(step.learning_rate / correction1),
          root = static_cast<T>(std::sqrt(correction2)), epsilon = static_cast<T>(step.epsilon);
  const T beta1 = static_cast<T>(step.beta1), other1 = static_cast<T>(1 - step.beta1);
  const T beta2 = static_cast<T>(step.beta2), other2 = static_cast<T>(1 - step.beta2);
  const T decay = static_cast<T>(step.gradient_decay);
  const T kept = static_cast<T>(1 - step.learning_rate * step.weight_decay);
  in_registers<T>(count, [&]<class V>(int64_t i) {
    V p = get<V>(parameter + i), g = get<V>(gradient + i);
    if (decay != 0) g += decay * p;
    if (kept != 1) p *= kept;
    const V m = beta1 * get<V>(mean + i) + other1 * g;
    const V s = beta2 * get<V>(square + i) + other2 * g * g;
    put(mean + i, m);
    put(square + i, s);
    put(parameter + i, V(p - rate * m / (square_root<T>(s) / root + epsilon)));
  });
}

/// The tensors as runs of numbers: as they lie, where all are contiguous; else copies, of which
/// those that are written go back.
class Runs {
 public:
  /// The first `num_read` are only read.
  Runs(const std::vector<at::Tensor>& tensors, size_t num_read)
      : tensors_(tensors), num_read_(num_read) {
    for (const at::Tensor& tensor : tensors) {
      TESSERA_CHECK(!tensor.defined() || (tensor.sizes() == tensors[0].sizes() &&
                                          tensor.scalar_type() == tensors[0].scalar_type()),
                    "an update of tensors of different shapes or types");
      runs_.push_back(tensor.defined() ? tensor.contiguous() : tensor);
    }
  }
  ~Runs() {
    for (size_t i = num_read_; i < runs_.size(); ++i)
      if (runs_[i].defined() && !runs_[i].is_same(tensors_[i])) tensors_[i].copy_(runs_[i]);
  }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  template <class T>
  T* at(size_t index) const {
    return runs_[index].defined() ? runs_[index].data_ptr<T>() : nullptr;
  }

 private:
  std::vector<at::Tensor> tensors_, runs_;
  size_t num_read_;
};

}  // namespace

namespace cpu {

void sgd_step(const SgdStep& step, const at::Tensor& parameter, const at::Tensor& gradient,
              const at::Tensor& velocity) {
  const Runs runs({gradient, parameter, velocity}, 1);
  AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "sgd_step", [&] {
    sgd<scalar_t>(step, parameter.numel(), runs.at<scalar_t>(1), runs.at<scalar_t>(0),
                  runs.at<scalar_t>(2));
  });
}

void adam_step(const AdamStep& step, const at::Tensor& parameter, const at::Tensor& gradient,
               const at::Tensor& mean, const at::Tensor& square) {
  const Runs runs({gradient, parameter, mean, square}, 1);
  AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "adam_step", [&] {
    adam<scalar_t>(step, parameter.numel(), runs.at<scalar_t>(1), runs.at<scalar_t>(0),
                   runs.at<scalar_t>(2), runs.at<scalar_t>(3));
  });
}

}  // namespace cpu

const OptimiserKernels OptimiserKernels::kCpu{.sgd_step = cpu::sgd_step,
                                              .adam_step = cpu::adam_step,
                                              .sgd_steps = sgd_steps_one_by_one<cpu::sgd_step>,
                                              .adam_steps = adam_steps_one_by_one<cpu::adam_step>};

}  // namespace tessera

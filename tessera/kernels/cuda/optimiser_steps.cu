// Compiled without contraction to fused multiply-adds: the bits are those of the CPU.

#include "tessera/kernels/cuda/optimiser_steps.h"

namespace tessera::cuda {
namespace {

constexpr int kThreads = 256;

/// Numbers of 16 bytes, as they are read and written at once.
template <class T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(T);
  T numbers[kCount];
};

__device__ inline bool is_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

template <class T>
__device__ inline Pack<T> load(const T* from) {
  return *reinterpret_cast<const Pack<T>*>(from);
}
template <class T>
__device__ inline void store(T* to, const Pack<T>& pack) {
  *reinterpret_cast<Pack<T>*>(to) = pack;
}

__device__ inline float root_of(float x) { return sqrtf(x); }
__device__ inline double root_of(double x) { return sqrt(x); }

template <class T>
struct Sgd {
  SgdNumbers<T> step;
  SgdRun<T> run;

  __device__ bool all_aligned() const {
    return is_aligned(run.parameter) && is_aligned(run.gradient) && is_aligned(run.velocity);
  }
  /// The parameter that follows; the velocity changes in place.
  __device__ T stepped(T p, T g, T& velocity) const {
    if (step.decay != 0) g += step.decay * p;
    if (run.velocity != nullptr) {
      velocity = step.momentum * velocity + g;
      g = step.nesterov ? g + step.momentum * velocity : velocity;
    }
    return p - step.rate * g;
  }
  __device__ void step_one(int64_t i) const {
    T velocity = run.velocity == nullptr ? T(0) : run.velocity[i];
    run.parameter[i] = stepped(run.parameter[i], run.gradient[i], velocity);
    if (run.velocity != nullptr) run.velocity[i] = velocity;
  }
  __device__ void step_pack(int64_t i) const {
    Pack<T> p = load(run.parameter + i), velocity{};
    const Pack<T> g = load(run.gradient + i);
    if (run.velocity != nullptr) velocity = load(run.velocity + i);
#pragma unroll
    for (int k = 0; k < Pack<T>::kCount; ++k)
      p.numbers[k] = stepped(p.numbers[k], g.numbers[k], velocity.numbers[k]);
    store(run.parameter + i, p);
    if (run.velocity != nullptr) store(run.velocity + i, velocity);
  }
};

template <class T>
struct Adam {
  AdamNumbers<T> step;
  AdamRun<T> run;

  __device__ bool all_aligned() const {
    return is_aligned(run.parameter) && is_aligned(run.gradient) && is_aligned(run.mean) &&
           is_aligned(run.square);
  }
  __device__ T stepped(T p, T g, T& mean, T& square) const {
    if (step.decay != 0) g += step.decay * p;
    if (step.kept != 1) p *= step.kept;
    mean = step.beta1 * mean + step.other1 * g;
    square = step.beta2 * square + step.other2 * g * g;
    return p - run.rate * mean / (root_of(square) / run.root + step.epsilon);
  }
  __device__ void step_one(int64_t i) const {
    run.parameter[i] = stepped(run.parameter[i], run.gradient[i], run.mean[i], run.square[i]);
  }
  __device__ void step_pack(int64_t i) const {
    Pack<T> p = load(run.parameter + i), mean = load(run.mean + i), square = load(run.square + i);
    const Pack<T> g = load(run.gradient + i);
#pragma unroll
    for (int k = 0; k < Pack<T>::kCount; ++k)
      p.numbers[k] = stepped(p.numbers[k], g.numbers[k], mean.numbers[k], square.numbers[k]);
    store(run.parameter + i, p);
    store(run.mean + i, mean);
    store(run.square + i, square);
  }
};

/// The part of a run that a block has.
template <class T, class Stepper>
__device__ void step_part(const Stepper& stepper, int64_t begin, int64_t end) {
  if (stepper.all_aligned()) {
    constexpr int kCount = Pack<T>::kCount;
    const int64_t packed_end = begin + (end - begin) / kCount * kCount;
    for (int64_t i = begin + threadIdx.x * kCount; i < packed_end; i += kThreads * kCount)
      stepper.step_pack(i);
    begin = packed_end;
  }
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) stepper.step_one(i);
}

template <class T, class Stepper, class Numbers, class Run>
__device__ void step_my_part(const Numbers& step, const SteppedRuns<Run>& runs) {
  int low = 0, high = runs.count;  // the run is in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (static_cast<int>(blockIdx.x) >= runs.first_block[middle])
      low = middle;
    else
      high = middle;
  }
  const Stepper stepper{step, runs.runs[low]};
  const int64_t begin = (blockIdx.x - runs.first_block[low]) * kSteppedByBlock;
  const int64_t size = stepper.run.size;
  step_part<T>(stepper, begin, size - begin < kSteppedByBlock ? size : begin + kSteppedByBlock);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    step_sgd(const __grid_constant__ SgdNumbers<T> step,
             const __grid_constant__ SteppedRuns<SgdRun<T>> runs) {
  step_my_part<T, Sgd<T>>(step, runs);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    step_adam(const __grid_constant__ AdamNumbers<T> step,
              const __grid_constant__ SteppedRuns<AdamRun<T>> runs) {
  step_my_part<T, Adam<T>>(step, runs);
}

template <class Run>
unsigned blocks_of(const SteppedRuns<Run>& runs) {
  return runs.count == 0 ? 0 : static_cast<unsigned>(runs.first_block[runs.count]);
}

static_assert(sizeof(SteppedRuns<AdamRun<double>>) + sizeof(AdamNumbers<double>) <= 4096);
static_assert(sizeof(SteppedRuns<SgdRun<double>>) + sizeof(SgdNumbers<double>) <= 4096);

}  // namespace

template <class T>
void step_runs(const SgdNumbers<T>& step, const SteppedRuns<SgdRun<T>>& runs, cudaStream_t stream) {
  if (const unsigned blocks = blocks_of(runs))
    step_sgd<<<blocks, kThreads, 0, stream>>>(step, runs);
}

template <class T>
void step_runs(const AdamNumbers<T>& step, const SteppedRuns<AdamRun<T>>& runs,
               cudaStream_t stream) {
  if (const unsigned blocks = blocks_of(runs))
    step_adam<<<blocks, kThreads, 0, stream>>>(step, runs);
}

template void step_runs(const SgdNumbers<float>&, const SteppedRuns<SgdRun<float>>&, cudaStream_t);
template void step_runs(const SgdNumbers<double>&, const SteppedRuns<SgdRun<double>>&,
                        cudaStream_t);
template void step_runs(const AdamNumbers<float>&, const SteppedRuns<AdamRun<float>>&,
                        cudaStream_t);
template void step_runs(const AdamNumbers<double>&, const SteppedRuns<AdamRun<double>>&,
                        cudaStream_t);

}  // namespace tessera::cuda

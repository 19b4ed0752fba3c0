#pragma once
// Launches behind the steps of the optimisers, of many parameters at once: a network has hundreds,
// most of them too small to be worth a launch. What a launch knows of its parameters travels as its
// arguments, of which there may be 4 KiB. See optimise.h for the formulas.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tessera::cuda {

/// Numbers that a block of threads steps.
inline constexpr int64_t kSteppedByBlock = 8192;

/// Runs of numbers, and the blocks that have a part of them: run i those from first_block[i] on.
template <class Run>
struct SteppedRuns {
  static constexpr int kMost = 60;
  int count = 0;
  int first_block[kMost + 1];
  Run runs[kMost];
};

template <class T>
struct SgdRun {
  T* parameter;
  const T* gradient;
  T* velocity;  // null without momentum
  int64_t size;
};

template <class T>
struct SgdNumbers {
  T rate, momentum, decay;
  bool nesterov;
};

/// Counters differ where a parameter was added later, and so does what follows from them.
template <class T>
struct AdamRun {
  T* parameter;
  const T* gradient;
  T *mean, *square;
  int64_t size;
  T rate, root;
};

template <class T>
struct AdamNumbers {
  T beta1, other1, beta2, other2, epsilon, decay, kept;
};

template <class T>
void step_runs(const SgdNumbers<T>& step, const SteppedRuns<SgdRun<T>>& runs, cudaStream_t stream);
template <class T>
void step_runs(const AdamNumbers<T>& step, const SteppedRuns<AdamRun<T>>& runs,
               cudaStream_t stream);

}  // namespace tessera::cuda

#include "tessera/runtime/thread_count.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <omp.h>

namespace tessera {

void set_rank_threads(int threads) {
  at::get_num_threads();  // a thread's first call sets the number to the process's: before ours
  at::set_num_threads(threads);
  omp_set_num_threads(threads);
}

void set_blas_threads(int threads) {
  using SetThreads = void (*)(int);
  static const auto set =
      reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set) set(threads);
}

}  // namespace tessera

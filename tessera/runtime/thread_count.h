#pragma once
// How many threads the kernels of a rank use. Ranks that are threads of one process must each say
// so: ATen's and OpenMP's settings are per thread, OpenBLAS's is one for the process.

namespace tessera {

/// Sets the number for this thread. LibTorch may carry an OpenMP runtime of its own, which does not
/// follow ours; both are set.
void set_rank_threads(int threads);

/// Sets the number for the process, in OpenBLAS where it is loaded. It does not follow ATen's
/// setting, and ranks that are threads would each start as many as there are cores.
void set_blas_threads(int threads);

}  // namespace tessera

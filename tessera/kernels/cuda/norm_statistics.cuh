#pragma once
// Launchers of norm_statistics.cu, on plain pointers. Parameters are float32 or float64.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tessera::cuda {

enum class ParameterNumber { kFloat32, kFloat64 };

cudaError_t launch_mean_and_inverse_std(const double* moments, int64_t cells, double epsilon,
                                        double* mean, double* inverse_std, cudaStream_t stream);
cudaError_t launch_update_running(const double* moments, int64_t cells, double momentum,
                                  void* running_mean, void* running_variance,
                                  ParameterNumber number, cudaStream_t stream);
/// `sums` and `means` have two rows; a row of `sums` begins `row_stride` numbers after the last.
/// The weight may be null.
cudaError_t launch_gradient_means(const double* sums, int64_t row_stride, int64_t channels,
                                  double count, const void* weight, ParameterNumber number,
                                  double* means, cudaStream_t stream);

}  // namespace tessera::cuda

#include "tessera/kernels/cuda/launch_kernel.cuh"
#include "tessera/kernels/cuda/norm_statistics.cuh"

namespace tessera::cuda {
namespace {

constexpr int kThreadsOfNumbers = 128;

__device__ int64_t own_index() {
  return static_cast<int64_t>(blockIdx.x) * kThreadsOfNumbers + threadIdx.x;
}

int64_t blocks_for(int64_t count) { return (count + kThreadsOfNumbers - 1) / kThreadsOfNumbers; }

__global__ void mean_and_inverse_std(const double* moments, int64_t cells, double epsilon,
                                     double* mean, double* inverse_std) {
  const int64_t cell = own_index();
  if (cell >= cells) return;
  mean[cell] = moments[3 * cell + 1];
  inverse_std[cell] = 1 / sqrt(moments[3 * cell + 2] / moments[3 * cell] + epsilon);
}

template <class T>
__global__ void update_running(const double* moments, int64_t cells, double momentum, T* mean,
                               T* variance) {
  const int64_t cell = own_index();
  if (cell >= cells) return;
  const double unbiased = moments[3 * cell + 2] / (moments[3 * cell] - 1);
  mean[cell] = static_cast<T>(mean[cell] * (1 - momentum) + moments[3 * cell + 1] * momentum);
  variance[cell] = static_cast<T>(variance[cell] * (1 - momentum) + unbiased * momentum);
}

template <class T>
__global__ void gradient_means(const double* sums, int64_t row_stride, int64_t channels,
                               double count, const T* weight, double* means) {
  const int64_t index = own_index();
  if (index >= 2 * channels) return;
  const int64_t row = index / channels, channel = index % channels;
  const double mean = sums[row * row_stride + channel] / count;
  means[index] = weight == nullptr ? mean : mean * static_cast<double>(weight[channel]);
}

}  // namespace

cudaError_t launch_mean_and_inverse_std(const double* moments, int64_t cells, double epsilon,
                                        double* mean, double* inverse_std, cudaStream_t stream) {
  return launch_kernel(mean_and_inverse_std, blocks_for(cells), kThreadsOfNumbers, stream, moments,
                       cells, epsilon, mean, inverse_std);
}

cudaError_t launch_update_running(const double* moments, int64_t cells, double momentum,
                                  void* running_mean, void* running_variance,
                                  ParameterNumber number, cudaStream_t stream) {
  if (number == ParameterNumber::kFloat64)
    return launch_kernel(update_running<double>, blocks_for(cells), kThreadsOfNumbers, stream,
                         moments, cells, momentum, static_cast<double*>(running_mean),
                         static_cast<double*>(running_variance));
  return launch_kernel(update_running<float>, blocks_for(cells), kThreadsOfNumbers, stream, moments,
                       cells, momentum, static_cast<float*>(running_mean),
                       static_cast<float*>(running_variance));
}

cudaError_t launch_gradient_means(const double* sums, int64_t row_stride, int64_t channels,
                                  double count, const void* weight, ParameterNumber number,
                                  double* means, cudaStream_t stream) {
  if (number == ParameterNumber::kFloat64)
    return launch_kernel(gradient_means<double>, blocks_for(2 * channels), kThreadsOfNumbers,
                         stream, sums, row_stride, channels, count,
                         static_cast<const double*>(weight), means);
  return launch_kernel(gradient_means<float>, blocks_for(2 * channels), kThreadsOfNumbers, stream,
                       sums, row_stride, channels, count, static_cast<const float*>(weight), means);
}

}  // namespace tessera::cuda

// All convolutions of a U-Net on one GPU: forward, the gradient of the image and that of the
// weight, by our kernels and by ATen's functions as PyTorch calls them. Ours read images with their
// margins and parameters in float32; ATen's are padded, and their weights lie ready in bf16 and
// channels last. Every result is compared before it is timed.
//
//   convolution_bench [size of the image = 1024] [base = 64]

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "tessera/kernels/convolution.h"

namespace tessera::convolution_bench {
namespace {

constexpr int kWarmUp = 5, kTimed = 21;

/// A convolution, or a transposed one with windows of 2x2 side by side.
struct Layer {
  std::string name;
  int64_t in, out, size, kernel;  // size: of the image that it reads
  bool is_transposed = false;

  double operations() const {
    const double pixels = static_cast<double>(size * size);
    return 2.0 * static_cast<double>(in * out * kernel * kernel) * pixels;
  }
};

std::vector<Layer> unet(int64_t size, int64_t base) {
  constexpr int64_t kLevels = 5;
  std::vector<Layer> layers;
  const auto pair = [&](const std::string& name, int64_t in, int64_t out, int64_t at_size) {
    layers.push_back({name + ".conv1", in, out, at_size, 3});
    layers.push_back({name + ".conv2", out, out, at_size, 3});
  };
  for (int64_t level = 0; level < kLevels; ++level)
    pair("down" + std::to_string(level), level == 0 ? 3 : base << (level - 1), base << level,
         size >> level);
  for (int64_t level = kLevels - 2; level >= 0; --level) {
    const int64_t channels = base << level;
    const std::string name = "up" + std::to_string(level);
    layers.push_back({name + ".widen", 2 * channels, channels, size >> (level + 1), 2, true});
    pair(name, 2 * channels, channels, size >> level);
  }
  layers.push_back({"head", base, 2, size, 1});
  return layers;
}

at::TensorOptions images() { return at::TensorOptions(at::kCUDA).dtype(at::kBFloat16); }

at::Tensor empty_image(int64_t channels, int64_t size) {
  return at::empty({1, channels, size, size},
                   images().memory_format(at::MemoryFormat::ChannelsLast));
}
at::Tensor random_image(int64_t channels, int64_t size) {
  return empty_image(channels, size).normal_();
}

/// The same step in two ways: our kernels, and ATen's. Both return what they have computed.
struct Step {
  std::function<at::Tensor()> ours, theirs;
};

using Steps = std::array<Step, 3>;  // forward, image, weight

at::Tensor backward(const Layer& layer, const at::Tensor& dy, const at::Tensor& x,
                    const at::Tensor& weight, int64_t padding, bool of_image) {
  const int64_t stride = layer.is_transposed ? 2 : 1;
  const auto gradients = at::convolution_backward(
      dy, x, weight, at::OptionalIntArrayRef(), {stride, stride}, {padding, padding}, {1, 1},
      layer.is_transposed, {0, 0}, 1, {of_image, !of_image, false});
  return of_image ? std::get<0>(gradients) : std::get<1>(gradients);
}

Steps convolution(const Layer& layer) {
  const int64_t margin = layer.kernel / 2, size = layer.size;
  const at::Tensor home = random_image(layer.in, size + 2 * margin);
  const at::Tensor x = empty_image(layer.in, size), y = empty_image(layer.out, size);
  const at::Tensor dy = random_image(layer.out, size), dx = empty_image(layer.in, size);
  const at::Tensor inside = home.narrow(2, margin, size).narrow(3, margin, size);
  x.copy_(inside);
  home.zero_();
  inside.copy_(x);
  const at::Tensor weight =
      at::randn({layer.out, layer.in, layer.kernel, layer.kernel}, images().dtype(at::kFloat));
  const at::Tensor gradient = at::zeros_like(weight);
  const at::Tensor narrow = weight.to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
  const ConvolutionShape shape{.stride = {1, 1}, .dilation = {1, 1}};
  ConvolutionShape cut = shape;
  cut.fine_begin = {margin, margin};
  return {
      Step{[=] { return convolve(shape, home, weight, {}, y, {}), y; },
           [=] {
             return at::convolution(x, narrow, {}, {1, 1}, {margin, margin}, {1, 1}, false, {0, 0},
                                    1);
           }},
      Step{[=] { return convolve_transposed(cut, dy, weight, {}, dx, {}), dx; },
           [=] { return backward(layer, dy, x, narrow, margin, true); }},
      Step{[=] { return add_convolution_weight_gradient(shape, home, dy, gradient, {}), gradient; },
           [=] { return backward(layer, dy, x, narrow, margin, false); }}};
}

Steps transposed(const Layer& layer) {
  const at::Tensor x = random_image(layer.in, layer.size), dx = empty_image(layer.in, layer.size);
  const at::Tensor y = empty_image(layer.out, 2 * layer.size),
                   dy = random_image(layer.out, 2 * layer.size);
  const at::Tensor weight = at::randn({layer.in, layer.out, 2, 2}, images().dtype(at::kFloat));
  const at::Tensor bias = at::randn({layer.out}, images().dtype(at::kFloat));
  const at::Tensor gradient = at::zeros_like(weight), narrow_bias = bias.to(at::kBFloat16);
  const at::Tensor narrow = weight.to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
  const ConvolutionShape shape{.stride = {2, 2}, .dilation = {1, 1}};
  return {
      Step{
          [=] { return convolve_transposed(shape, x, weight, bias, y, {}), y; },
          [=] {
            return at::convolution(x, narrow, narrow_bias, {2, 2}, {0, 0}, {1, 1}, true, {0, 0}, 1);
          }},
      Step{[=] { return convolve(shape, dy, weight, {}, dx, {}), dx; },
           [=] { return backward(layer, dy, x, narrow, 0, true); }},
      Step{[=] { return add_convolution_weight_gradient(shape, dy, x, gradient, {}), gradient; },
           [=] { return backward(layer, dy, x, narrow, 0, false); }}};
}

/// Microseconds, the median.
double time_of(const std::function<at::Tensor()>& run) {
  for (int i = 0; i < kWarmUp; ++i) run();
  std::vector<double> times;
  for (int i = 0; i < kTimed; ++i) {
    at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
    begin.record();
    run();
    end.record();
    end.synchronize();
    times.push_back(1e3 * begin.elapsed_time(end));
  }
  std::nth_element(times.begin(), times.begin() + kTimed / 2, times.end());
  return times[kTimed / 2];
}

/// The first call, from zeros, against ATen's.
bool agree(const Step& step) {
  const at::Tensor found = step.ours().to(at::kFloat), right = step.theirs().to(at::kFloat);
  const double apart = ((found - right).abs().max() / right.abs().max()).item<double>();
  if (apart <= 0.02) return true;
  std::fprintf(stderr, "differs by %g of the largest number\n", apart);
  return false;
}

struct Sums {
  double ours = 0, theirs = 0, operations = 0;

  void add(const Sums& more) {
    ours += more.ours;
    theirs += more.theirs;
    operations += more.operations;
  }
  void print(const std::string& name, const char* step) const {
    std::printf("%-12s %-8s %10.1f %10.1f %8.1f %8.1f %6.2f\n", name.c_str(), step, ours, theirs,
                operations / ours * 1e-6, operations / theirs * 1e-6, ours / theirs);
  }
};

bool run(int64_t size, int64_t base) {
  constexpr std::array<const char*, 3> kNames{"forward", "image", "weight"};
  at::globalContext().setBenchmarkCuDNN(true);
  std::printf("%-12s %-8s %10s %10s %8s %8s %6s\n", "layer", "step", "ours_us", "aten_us",
              "ours_TF", "aten_TF", "ratio");
  std::array<Sums, 3> sums;
  bool all_agree = true;
  for (const Layer& layer : unet(size, base)) {
    const Steps steps = layer.is_transposed ? transposed(layer) : convolution(layer);
    for (size_t i = 0; i < steps.size(); ++i) {
      // Nothing asks for the gradient of the network's input.
      if (i == 1 && layer.in == 3) continue;
      all_agree = agree(steps[i]) && all_agree;
      const Sums found{time_of(steps[i].ours), time_of(steps[i].theirs), layer.operations()};
      found.print(layer.name, kNames[i]);
      sums[i].add(found);
    }
  }
  Sums all;
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i].print("all", kNames[i]);
    all.add(sums[i]);
  }
  all.print("all", "all");
  return all_agree;
}

}  // namespace
}  // namespace tessera::convolution_bench

int main(int argc, char** argv) {
  const int64_t size = argc > 1 ? std::atoll(argv[1]) : 1024,
                base = argc > 2 ? std::atoll(argv[2]) : 64;
  if (size < 16 || size % 16 != 0 || base < 1) {
    std::fprintf(stderr, "usage: convolution_bench [size, a multiple of 16] [base]\n");
    return 2;
  }
  return tessera::convolution_bench::run(size, base) ? 0 : 1;
}

#include "tessera/kernels/convolution.h"

#include <span>

#include "tessera/kernels/cpu/depthwise.h"
#include "tessera/kernels/cpu/strided_tensor.h"
#include "tessera/kernels/cpu/window_gradient.h"
#include "tessera/kernels/cpu/window_product.h"
#include "tessera/kernels/cpu/winograd_gradient.h"
#include "tessera/kernels/cpu/winograd_product.h"
#include "tessera/kernels/scratch.h"

namespace tessera {
namespace {

/// Programs that are compiled for a machine without wide registers call LibTorch, which looks at
/// the machine when it runs.
constexpr bool kLibraryIsFaster = kVectorBytes < 32;

constexpr int kMaxSpace = 3;

/// The formula with three axes; those that the image does not have stand still.
struct Connection {
  SpaceAxes kernel, stride, dilation, fine_begin;

  Connection(const ConvolutionShape& shape, const at::Tensor& weight)
      : kernel(last_axes(weight.sizes().slice(2), 1)),
        stride(last_axes(shape.stride, 1)),
        dilation(last_axes(shape.dilation, 1)),
        fine_begin(last_axes(shape.fine_begin, 0)) {}

  /// Calls visit(tap, entry) for all taps in the order of the weight.
  template <class Visit>
  void for_taps(Visit&& visit) const {
    int64_t entry = 0;
    for (int64_t d = 0; d < kernel[0]; ++d)
      for (int64_t h = 0; h < kernel[1]; ++h)
        for (int64_t w = 0; w < kernel[2]; ++w) visit(SpaceAxes{d, h, w}, entry++);
  }

  /// Windows over the fine image, one for each coarse position.
  Windows over_fine(const SpaceAxes& coarse_size) const {
    Windows windows{coarse_size, stride, {}};
    for_taps([&](const SpaceAxes& tap, int64_t entry) {
      SpaceAxes offset;
      for (int axis = 0; axis < kMaxSpace; ++axis)
        offset[axis] = tap[axis] * dilation[axis] - fine_begin[axis];
      windows.taps.push_back({offset, entry});
    });
    return windows;
  }
};

int64_t remainder(int64_t a, int64_t b) { return ((a % b) + b) % b; }

/// Every stride-th fine pixel along each axis, from `first` on, and the windows over the coarse
/// image that meet in these.
struct FinePhase {
  OutputLattice lattice;
  Windows windows;

  FinePhase(const Connection& connection, const SpaceAxes& fine_size, const SpaceAxes& first) {
    lattice = {connection.stride, first};
    for (int axis = 0; axis < kMaxSpace; ++axis) {
      const int64_t stride = connection.stride[axis];
      windows.count[axis] = (fine_size[axis] - first[axis] + stride - 1) / stride;
    }
    connection.for_taps([&](const SpaceAxes& tap, int64_t entry) {
      SpaceAxes offset;
      for (int axis = 0; axis < kMaxSpace; ++axis) {
        const int64_t reached =
            first[axis] + connection.fine_begin[axis] - tap[axis] * connection.dilation[axis];
        if (remainder(reached, connection.stride[axis]) != 0) return;
        offset[axis] = reached / connection.stride[axis];
      }
      windows.taps.push_back({offset, entry});
    });
  }
};

/// Calls visit(phase) for all phases that have pixels.
template <class Visit>
void for_phases(const Connection& connection, const SpaceAxes& fine_size, Visit&& visit) {
  SpaceAxes first;
  const auto phases = [&](int axis) { return std::min(connection.stride[axis], fine_size[axis]); };
  for (first[0] = 0; first[0] < phases(0); ++first[0])
    for (first[1] = 0; first[1] < phases(1); ++first[1])
      for (first[2] = 0; first[2] < phases(2); ++first[2])
        visit(FinePhase(connection, fine_size, first));
}

bool leaves_gaps(const Connection& connection, const SpaceAxes& fine_size) {
  bool gaps = false;
  for_phases(connection, fine_size,
             [&](const FinePhase& phase) { gaps = gaps || phase.windows.taps.empty(); });
  return gaps;
}

void fill_channels(const at::Tensor& image, const at::Tensor& bias) {
  if (!bias.defined()) return void(image.zero_());
  std::vector<int64_t> shape(static_cast<size_t>(image.dim()), 1);
  shape[1] = bias.numel();
  image.copy_(bias.view(shape).expand_as(image));
}

/// 1x1 windows over images without gaps between rows are windows over one long row.
template <class In, class Out>
void join_rows(Windows& windows, StridedImage<In>& in, StridedImage<Out>& out) {
  const SpaceAxes ones{1, 1, 1}, zeros{};
  if (windows.taps.size() != 1 || windows.step != ones || windows.taps[0].offset != zeros ||
      in.size != out.size || windows.count != out.size)
    return;
  for (int axis = 1; axis >= 0; --axis) {
    const bool joins = in.stride[axis] == in.size[2] * in.stride[2] &&
                       out.stride[axis] == out.size[2] * out.stride[2];
    if (!joins && in.size[axis] > 1) return;
    for (SpaceAxes* size : {&in.size, &out.size, &windows.count}) {
      (*size)[2] *= (*size)[axis];
      (*size)[axis] = 1;
    }
  }
}

template <class T>
std::span<T> numbers_in(const at::Tensor& scratch) {
  return {reinterpret_cast<T*>(scratch.data_ptr<uint8_t>()),
          static_cast<size_t>(scratch.numel()) / sizeof(T)};
}

void check_shapes(const ConvolutionShape& shape, const at::Tensor& fine, const at::Tensor& weight,
                  const at::Tensor& coarse) {
  TORCH_CHECK(weight.is_contiguous() && weight.size(0) == coarse.size(1) &&
                  weight.size(1) * shape.groups == fine.size(1),
              "a weight of ", weight.sizes(), " in ", shape.groups, " groups does not connect ",
              fine.sizes(), " and ", coarse.sizes());
}

GroupChannels group_channels(int64_t group, int64_t groups, int64_t all_in, int64_t all_out) {
  const int64_t in = all_in / groups, out = all_out / groups;
  return {group * in, in, group * out, out};
}

/// Winograd's tiles pay where a product over channels is long enough to pay for the transforms...
bool has_winograd_channels(ConvolutionMethod method, int64_t channels, int64_t other_channels) {
  constexpr int64_t kLeastChannels = 8;
  return method == ConvolutionMethod::kWinograd ||
         (method == ConvolutionMethod::kAuto &&
          std::min(channels, other_channels) >= kLeastChannels);
}

bool may_use_winograd(const ConvolutionShape& shape, at::IntArrayRef weight_shape) {
  const at::IntArrayRef kernel = weight_shape.slice(2);
  return kernel.size() >= 2 && kernel[kernel.size() - 1] == winograd::kKernel &&
         kernel[kernel.size() - 2] == winograd::kKernel &&
         has_winograd_channels(shape.method, weight_shape[0] / shape.groups, weight_shape[1]);
}

/// ... and there are enough tiles to fill a panel. Pixels of a row are read and written together.
template <class In, class T>
bool uses_winograd(ConvolutionMethod method, const SquareTaps& taps, const StridedImage<In>& in,
                   const StridedImage<T>& out, const GroupChannels& group) {
  constexpr bool kHasSquares = kLanes<std::remove_const_t<T>> >= winograd::kOut;
  if (!kHasSquares || taps.slices > SquareTaps::kMostSlices) return false;
  if (!has_contiguous_rows(in) || !has_contiguous_rows(out)) return false;
  const int64_t tiles = out.batch * ((out.size[1] + 3) / 4) * ((out.size[2] + 3) / 4);
  const bool has_tiles = tiles >= kPanelColumns<std::remove_const_t<T>> / 2;
  return has_winograd_channels(method, group.num_in, group.num_out) &&
         (has_tiles || method == ConvolutionMethod::kWinograd);
}

/// One group of channels, by the faster way. The scratch holds as much of the weight as it can.
template <class T>
void run_product(ConvolutionMethod method, const StridedImage<const T>& in, const Windows& windows,
                 const WindowWeight<Number<T>>& weight, const Number<T>* bias,
                 const StridedImage<T>& out, const OutputLattice& lattice,
                 const GroupChannels& group, const at::Tensor& scratch) {
  const std::optional<SquareTaps> taps = SquareTaps::of(windows);
  if (taps && lattice.step == SpaceAxes{1, 1, 1} && uses_winograd(method, *taps, in, out, group))
    WinogradProduct<T>(in, *taps, weight, bias, out, group, numbers_in<Number<T>>(scratch)).run();
  else
    WindowProduct<T>(in, windows, weight, bias, out, lattice, group,
                     numbers_in<typename Packing<T>::Entry>(scratch))
        .run();
}

at::ScalarType registers_type(at::ScalarType type) {
  return type == at::kBFloat16 ? at::kFloat : type;
}

/// The weight as pairs: for either side, the other side's channels and taps two by two.
ScratchBytes pairs_scratch_bytes(int64_t coarse, int64_t fine, int64_t taps) {
  const auto pairs = [&](int64_t rows, int64_t depth) { return rows * ((depth * taps + 1) / 2); };
  const auto panel = [](int64_t rows) { return std::min<int64_t>(kPanelRows, rows); };
  const auto bytes = [](int64_t forward, int64_t back) {
    return Scratch::bytes_of(std::max(forward, back), at::kInt);
  };
  return {bytes(pairs(panel(coarse), fine), pairs(panel(fine), coarse)),
          bytes(pairs(coarse, fine), pairs(fine, coarse))};
}

}  // namespace

bool multiplies_bf16(const ConvolutionShape& shape, at::DeviceType device) {
  return device != at::kCPU || (kHasBf16Pairs && shape.groups == 1);
}

ScratchBytes convolution_scratch_bytes(const ConvolutionShape& shape, at::IntArrayRef weight_shape,
                                       at::ScalarType type, at::DeviceType device) {
  if (device != at::kCPU || kLibraryIsFaster || has_thin_groups(weight_shape, shape.groups))
    return {};
  const int64_t coarse = weight_shape[0] / shape.groups, fine = weight_shape[1];
  const int64_t taps = c10::multiply_integers(weight_shape.slice(2));
  const bool tiles = may_use_winograd(shape, weight_shape);
  if (type == at::kBFloat16 && !tiles) return pairs_scratch_bytes(coarse, fine, taps);
  const int64_t numbers = tiles ? taps / 9 * winograd::kPoints : taps;
  // A panel of rows at least, of the one side or of the other.
  const int64_t least = std::max(std::min<int64_t>(kPanelRows, coarse) * fine,
                                 std::min<int64_t>(kPanelRows, fine) * coarse);
  const auto bytes = [&](int64_t count) { return Scratch::bytes_of(count, registers_type(type)); };
  return {bytes(least * numbers), bytes(coarse * fine * numbers)};
}

ScratchBytes convolution_gradient_scratch_bytes(const ConvolutionShape& shape,
                                                at::IntArrayRef weight_shape,
                                                at::IntArrayRef coarse_shape, at::ScalarType type,
                                                at::DeviceType device) {
  if (device != at::kCPU || kLibraryIsFaster || has_thin_groups(weight_shape, shape.groups) ||
      !may_use_winograd(shape, weight_shape))
    return {};
  const int64_t coarse = weight_shape[0] / shape.groups;
  const int64_t slices = c10::multiply_integers(weight_shape.slice(2)) / 9;
  const at::ScalarType number = registers_type(type);
  return AT_DISPATCH_FLOATING_TYPES(number, "convolution_gradient_scratch_bytes", [&] {
    using Room = GradientRoom<scalar_t>;
    const int64_t tiles = coarse_shape[0] *
                          Room::tiles_over(coarse_shape[coarse_shape.size() - 2]) *
                          Room::tiles_over(coarse_shape.back());
    const Room room(weight_shape[1], coarse, slices, tiles);
    const auto bytes = [&](int64_t rows) {
      return Scratch::bytes_of(room.points() + rows * room.sums_of_row(), number);
    };
    return ScratchBytes(bytes(room.panels.height()), bytes(coarse));
  });
}

namespace cpu {

void convolve(const ConvolutionShape& shape, const at::Tensor& fine, const at::Tensor& weight,
              const at::Tensor& bias, const at::Tensor& coarse, const at::Tensor& scratch) {
  check_shapes(shape, fine, weight, coarse);
  if (coarse.numel() == 0) return;
  if (kLibraryIsFaster)
    return ConvolutionKernels::kAten.convolve(shape, fine, weight, bias, coarse, scratch);
  if (has_thin_groups(weight.sizes(), shape.groups))
    return convolve_depthwise(shape, fine, weight, bias, coarse);
  const Connection connection(shape, weight);
  on_numbers_of(fine, [&]<class Stored>() {
    StridedImage<const Stored> in = image_of<const Stored>(fine);
    StridedImage<Stored> out = image_of<Stored>(coarse);
    Windows windows = connection.over_fine(out.size);
    join_rows(windows, in, out);
    const int64_t taps = std::ssize(windows.taps);
    using T = Number<Stored>;
    for (int64_t g = 0; g < shape.groups; ++g) {
      const GroupChannels group = group_channels(g, shape.groups, in.channels, out.channels);
      const WindowWeight<T> entries{weight.data_ptr<T>() + group.first_out * group.num_in * taps,
                                    group.num_in * taps, taps};
      run_product<Stored>(shape.method, in, windows, entries, pointer_or_null<T>(bias), out, {},
                          group, scratch);
    }
  });
}

void convolve_transposed(const ConvolutionShape& shape, const at::Tensor& coarse,
                         const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& fine,
                         const at::Tensor& scratch) {
  check_shapes(shape, fine, weight, coarse);
  if (fine.numel() == 0) return;
  if (kLibraryIsFaster)
    return ConvolutionKernels::kAten.convolve_transposed(shape, coarse, weight, bias, fine,
                                                         scratch);
  if (has_thin_groups(weight.sizes(), shape.groups))
    return convolve_depthwise_transposed(shape, coarse, weight, bias, fine);
  const Connection connection(shape, weight);
  const int64_t taps = c10::multiply_integers(weight.sizes().slice(2));
  on_numbers_of(fine, [&]<class Stored>() {
    using T = Number<Stored>;
    const StridedImage<Stored> whole = image_of<Stored>(fine);
    // Where a stride is longer than the kernel, no window meets some of the pixels.
    if (leaves_gaps(connection, whole.size)) fill_channels(fine, bias);
    for_phases(connection, whole.size, [&](FinePhase phase) {
      if (phase.windows.taps.empty()) return;
      StridedImage<const Stored> in = image_of<const Stored>(coarse);
      StridedImage<Stored> out = whole;
      if (phase.lattice.step == SpaceAxes{1, 1, 1}) join_rows(phase.windows, in, out);
      for (int64_t g = 0; g < shape.groups; ++g) {
        const GroupChannels group = group_channels(g, shape.groups, in.channels, out.channels);
        const WindowWeight<T> entries{weight.data_ptr<T>() + group.first_in * group.num_out * taps,
                                      taps, group.num_out * taps};
        run_product<Stored>(shape.method, in, phase.windows, entries, pointer_or_null<T>(bias), out,
                            phase.lattice, group, scratch);
      }
    });
  });
}

void add_convolution_weight_gradient(const ConvolutionShape& shape, const at::Tensor& fine,
                                     const at::Tensor& coarse, const at::Tensor& weight_gradient,
                                     const at::Tensor& scratch) {
  check_shapes(shape, fine, weight_gradient, coarse);
  if (coarse.numel() == 0 || fine.numel() == 0) return;
  if (kLibraryIsFaster)
    return ConvolutionKernels::kAten.add_convolution_weight_gradient(shape, fine, coarse,
                                                                     weight_gradient, scratch);
  if (has_thin_groups(weight_gradient.sizes(), shape.groups))
    return add_depthwise_weight_gradient(shape, fine, coarse, weight_gradient);
  const Connection connection(shape, weight_gradient);
  on_numbers_of(fine, [&]<class Stored>() {
    using T = Number<Stored>;
    StridedImage<const Stored> in = image_of<const Stored>(fine);
    StridedImage<const Stored> out = image_of<const Stored>(coarse);
    Windows windows = connection.over_fine(out.size);
    join_rows(windows, in, out);
    const std::optional<SquareTaps> taps = SquareTaps::of(windows);
    for (int64_t g = 0; g < shape.groups; ++g) {
      const GroupChannels group = group_channels(g, shape.groups, in.channels, out.channels);
      T* gradient =
          weight_gradient.data_ptr<T>() + group.first_out * group.num_in * std::ssize(windows.taps);
      if (taps && uses_winograd(shape.method, *taps, in, out, group))
        WinogradGradient<Stored>(in, *taps, out, group, gradient, numbers_in<T>(scratch)).run();
      else
        WindowGradient<Stored>(in, windows, out, group, gradient).run();
    }
  });
}

}  // namespace cpu

const ConvolutionKernels ConvolutionKernels::kCpu{
    .convolve = cpu::convolve,
    .convolve_transposed = cpu::convolve_transposed,
    .add_convolution_weight_gradient = cpu::add_convolution_weight_gradient};

}  // namespace tessera

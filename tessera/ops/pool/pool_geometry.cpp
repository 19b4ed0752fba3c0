#include "tessera/ops/pool/pool_geometry.h"
#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/ops/conv/convolution.h"

namespace tessera {
namespace {

std::vector<int64_t> per_axis(const char* what, const std::vector<int64_t>& values,
                              int num_spatial) {
  if (values.size() == 1) return std::vector<int64_t>(num_spatial, values[0]);
  if (static_cast<int>(values.size()) != num_spatial)
    throw_error<InvalidInput>("{} has {} entries; give 1, or {} as the input has spatial axes",
                              what, values.size(), num_spatial);
  return values;
}

/// A dilated window can step over a small image; PyTorch's result for it has no gradient.
void check_every_window_reads(const Window& window, int64_t input_size) {
  const PoolAxis axis{window.kernel,
                      window.stride,
                      window.dilation,
                      window.pad_low,
                      input_size,
                      {0, window.output_size(input_size)},
                      {}};
  for (int64_t output = 0; output < axis.out.end; ++output)
    if (axis.taps_inside(output).empty())
      throw_error<InvalidInput>(
          "kernel {} with dilation {} and padding {} steps over the input of size {}; use dilation "
          "at most {}",
          window.kernel, window.dilation, window.pad_low, input_size, input_size);
}

void check_axis(const Window& window, int64_t input_size) {
  if (window.kernel < 1 || window.stride < 1 || window.dilation < 1)
    throw_error<InvalidInput>("kernel {}, stride {} and dilation {} must be at least 1",
                              window.kernel, window.stride, window.dilation);
  if (window.pad_low < 0 || window.pad_low > window.kernel / 2)
    throw_error<InvalidInput>("padding {} must be from 0 to half of kernel {}", window.pad_low,
                              window.kernel);
  if (window.output_size(input_size) < 1)
    throw_error<InvalidInput>(
        "kernel {} with dilation {} does not fit input size {} with padding {} on both sides",
        window.kernel, window.dilation, input_size, window.pad_low);
  if (window.dilation > 1) check_every_window_reads(window, input_size);
}

}  // namespace

ValueType PoolGeometry::infer_type(const ValueType& input) const {
  const int num_spatial = input.num_spatial(), first = input.first_spatial();
  if (first != 2 || num_spatial < 1 || num_spatial > 3 || input.element != Element::kReal)
    throw_error<InvalidInput>("input {} must be real, with batch, channels and 1 to 3 spatial axes",
                              to_string(input));
  if (options_.divisor_override < 0)
    throw_error<InvalidInput>("divisor override {} must be at least 1, or 0 for none",
                              options_.divisor_override);
  ValueType output = input;
  for (int index = 0; index < num_spatial; ++index) {
    Axis& axis = output.axes[first + index];
    const Window along = window(index, num_spatial);
    check_axis(along, axis.size);
    axis.size = along.output_size(axis.size);
    axis.stride = axis.stride * Ratio::of(along.stride, 1);
  }
  return output;
}

bool PoolGeometry::windows_overlap() const {
  if (std::ranges::max(options_.dilation) > 1) return true;
  return !options_.stride.empty() &&
         std::ranges::max(options_.kernel) > std::ranges::min(options_.stride);
}

Box PoolGeometry::needed(const Box& out, const NodeTypes& types) const {
  const ValueType& input = types.inputs[0];
  Box box = out;
  for (int axis = 2; axis < input.num_axes(); ++axis) {
    const int64_t size = input.axes[axis].size;
    const Range reads = window(axis - 2, input.num_spatial()).needed(out[axis], size);
    box[axis] = intersect(reads, Range{0, size});
  }
  return box;
}

PoolPiece PoolGeometry::piece(const Box& out, const NodeTypes& types) const {
  const ValueType& input = types.inputs[0];
  const int num_spatial = input.num_spatial();
  const Box reads = needed(out, types);
  PoolPiece piece;
  for (int index = 0; index < num_spatial; ++index) {
    const Window along = window(index, num_spatial);
    piece[3 - num_spatial + index] = {
        along.kernel,   along.stride,    along.dilation, along.pad_low, input.axes[2 + index].size,
        out[2 + index], reads[2 + index]};
  }
  return piece;
}

int64_t PoolGeometry::kernel_volume(const NodeTypes& types) const {
  int64_t volume = 1;
  for (int64_t size : kernel(types.inputs[0].num_spatial())) volume *= size;
  return volume;
}

std::vector<int64_t> PoolGeometry::kernel(int num_spatial) const {
  return per_axis("kernel", options_.kernel, num_spatial);
}

std::vector<int64_t> PoolGeometry::stride(int num_spatial) const {
  return options_.stride.empty() ? kernel(num_spatial)
                                 : per_axis("stride", options_.stride, num_spatial);
}

std::vector<int64_t> PoolGeometry::padding(int num_spatial) const {
  return per_axis("padding", options_.padding, num_spatial);
}

std::vector<int64_t> PoolGeometry::dilation(int num_spatial) const {
  return per_axis("dilation", options_.dilation, num_spatial);
}

Window PoolGeometry::window(int spatial_index, int num_spatial) const {
  const int64_t pad = padding(num_spatial)[spatial_index];
  return {.kernel = kernel(num_spatial)[spatial_index],
          .stride = stride(num_spatial)[spatial_index],
          .dilation = dilation(num_spatial)[spatial_index],
          .pad_low = pad,
          .pad_high = pad,
          .ceil_mode = options_.ceil_mode};
}

std::string PoolGeometry::settings() const {
  const auto differs = [](const std::vector<int64_t>& sizes, int64_t usual) {
    return std::any_of(sizes.begin(), sizes.end(), [=](int64_t size) { return size != usual; });
  };
  std::string text = sizes_text(options_.kernel);
  if (!options_.stride.empty()) text += fmt::format(", stride {}", sizes_text(options_.stride));
  if (differs(options_.padding, 0))
    text += fmt::format(", padding {}", sizes_text(options_.padding));
  if (differs(options_.dilation, 1))
    text += fmt::format(", dilation {}", sizes_text(options_.dilation));
  if (options_.ceil_mode) text += ", ceil";
  return text;
}

}  // namespace tessera

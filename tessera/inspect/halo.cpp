#include "tessera/inspect/halo.h"

#include <algorithm>

namespace tessera {
namespace {

/// Which axis of the tensor is the spatial axis `spatial_index`; -1: none.
int find_axis(const ValueType& type, int spatial_index) {
  for (int axis = 0; axis < type.num_axes(); ++axis)
    if (type.axes[axis].kind == AxisKind::kSpatial &&
        type.axes[axis].spatial_index == spatial_index)
      return axis;
  return -1;
}

/// Where input and output are cut, the middle of both on each other.
struct Cut {
  int64_t output = 0;
  int64_t input = 0;
};

/// The output is cut where a whole number of input pixels ends: an up-convolution by 2 at an even
/// place.
Cut middle_cut(const Axis& input, const Axis& output) {
  const Ratio ratio = output.stride / input.stride;  // input pixels per output pixel
  int64_t cut = output.size / 2;
  if (cut >= ratio.den) cut -= cut % ratio.den;
  const int64_t twice_input =
      input.size * ratio.den + (2 * cut - output.size) * ratio.num;  // over ratio.den
  return {cut, twice_input / (2 * ratio.den)};
}

/// Inputs that the outputs `out` along the spatial axis read, inside the image.
Range read_range(const Node& node, int input, int axis, int out_axis, const Range& out) {
  Box box = Box::whole(node.types.output.shape());
  if (out_axis >= 0) box[out_axis] = out;
  if (box.empty()) return {};
  const Box need = node.op->needed(input, box, node.types);
  if (need.empty()) return {};
  return intersect(need[axis], {0, node.types.inputs[input].axes[axis].size});
}

/// An input with one pixel along the axis is spread over the output; no halo brings it.
HaloAxis halo_along(const Node& node, int input, int spatial_index) {
  const ValueType& type = node.types.inputs[input];
  const int axis = find_axis(type, spatial_index);
  if (axis < 0 || type.axes[axis].size < 2) return {};
  const int64_t input_size = type.axes[axis].size;
  const int out_axis = find_axis(node.types.output, spatial_index);
  if (out_axis < 0) return {0, 0, read_range(node, input, axis, -1, {}) == Range{0, input_size}};

  const Axis& output = node.types.output.axes[out_axis];
  const Cut cut = middle_cut(type.axes[axis], output);
  const Range first = read_range(node, input, axis, out_axis, {0, cut.output});
  const Range second = read_range(node, input, axis, out_axis, {cut.output, output.size});
  HaloAxis halo;
  halo.whole = first == Range{0, input_size} || second == Range{0, input_size};
  if (first.empty() || second.empty() || first.end <= second.begin) return halo;
  // A crop or padding of one side moves the middle; the cut lies where the halves meet.
  const int64_t input_cut = std::clamp(cut.input, second.begin, first.end);
  halo.low = input_cut - second.begin;
  halo.high = first.end - input_cut;
  return halo;
}

}  // namespace

std::vector<HaloAxis> operator_halo(const Node& node) {
  int num_spatial = 0;
  for (const ValueType& type : node.types.inputs)
    num_spatial = std::max(num_spatial, type.num_spatial());
  std::vector<HaloAxis> halo(num_spatial);
  for (int i = 0; i < num_spatial; ++i)
    for (size_t input = 0; input < node.inputs.size(); ++input) {
      const HaloAxis along = halo_along(node, static_cast<int>(input), i);
      halo[i].low = std::max(halo[i].low, along.low);
      halo[i].high = std::max(halo[i].high, along.high);
      halo[i].whole = halo[i].whole || along.whole;
    }
  return halo;
}

}  // namespace tessera

#include "tessera/kernels/cuda/box_binding.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tessera/geometry/divide.h"

namespace tessera::cuda {
namespace {

struct Axis {
  int64_t size, source, target;  // strides
};

std::optional<BoxNumber> box_number(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return BoxNumber::kFloat64;
    case at::kFloat:
      return BoxNumber::kFloat32;
    case at::kBFloat16:
      return BoxNumber::kBFloat16;
    case at::kLong:
      return BoxNumber::kInt64;
    case at::kInt:
      return BoxNumber::kInt32;
    case at::kByte:
      return BoxNumber::kByte;
    default:
      return std::nullopt;
  }
}

/// Those that are longer than 1, from the target's longest stride to its shortest, neighbours
/// joined where both views allow it.
std::vector<Axis> joined_axes(const at::Tensor& source, const at::Tensor& target) {
  std::vector<Axis> axes;
  for (int64_t axis = 0; axis < target.dim(); ++axis)
    if (target.size(axis) > 1)
      axes.push_back(
          {target.size(axis), source.defined() ? source.stride(axis) : 0, target.stride(axis)});
  std::ranges::stable_sort(axes, std::ranges::greater{}, &Axis::target);
  std::vector<Axis> joined;
  for (Axis axis : axes) {
    const bool joins = !joined.empty() && joined.back().target == axis.size * axis.target &&
                       (!source.defined() || joined.back().source == axis.size * axis.source);
    if (joins) {
      axis.size *= joined.back().size;
      joined.pop_back();
    }
    joined.push_back(axis);
  }
  if (joined.empty()) joined.push_back({1, 1, 1});
  return joined;
}

bool is_at(const at::Tensor& tensor, int64_t bytes) {
  return !tensor.defined() ||
         reinterpret_cast<uintptr_t>(tensor.data_ptr()) % static_cast<uintptr_t>(bytes) == 0;
}

/// Whether so many numbers can be moved at once.
bool takes_units(const std::vector<Axis>& axes, const at::Tensor& source, const at::Tensor& target,
                 int64_t numbers) {
  const Axis& inner = axes.back();
  if (inner.target != 1 || (source.defined() && inner.source != 1)) return false;
  for (size_t axis = 0; axis + 1 < axes.size(); ++axis)
    if (axes[axis].source % numbers != 0 || axes[axis].target % numbers != 0) return false;
  return inner.size % numbers == 0 &&
         is_at(target, numbers * static_cast<int64_t>(target.element_size())) &&
         (!source.defined() ||
          is_at(source, numbers * static_cast<int64_t>(source.element_size())));
}

void count_in_units(std::vector<Axis>& axes, int64_t numbers) {
  if (numbers == 1) return;
  for (Axis& axis : axes) {
    axis.source /= numbers;
    axis.target /= numbers;
  }
  axes.back() = {axes.back().size / numbers, 1, 1};
}

int64_t widest_number(const at::Tensor& source, const at::Tensor& target) {
  return static_cast<int64_t>(
      std::max(target.element_size(), source.defined() ? source.element_size() : 0));
}

/// Numbers moved at once: some lengths of 16 bytes and less where bytes are moved, else all or one.
int64_t numbers_of_unit(const BoxKind& kind, const std::vector<Axis>& axes,
                        const at::Tensor& source, const at::Tensor& target) {
  const bool moves_bytes = kind.work == BoxWork::kCopy || kind.work == BoxWork::kZero;
  const int64_t most = 16 / widest_number(source, target);
  for (int64_t numbers = most; numbers > 1; numbers = moves_bytes ? numbers / 2 : 1)
    if (takes_units(axes, source, target, numbers)) return numbers;
  return 1;
}

/// Where a view begins and ends in memory.
struct Extent {
  uintptr_t begin, end;

  explicit Extent(const at::Tensor& view) : begin(reinterpret_cast<uintptr_t>(view.data_ptr())) {
    int64_t last = 0;
    for (int64_t axis = 0; axis < view.dim(); ++axis)
      last += (view.size(axis) - 1) * view.stride(axis);
    end = begin + static_cast<uintptr_t>(last + 1) * view.element_size();
  }
};

/// An axis of two views: the index of one less that of the other lies between `least` and `most`.
struct Difference {
  int64_t stride, least, most;
};

/// Whether differences of indices make this distance. Strides are in descending order.
bool reaches(const std::vector<Difference>& axes, size_t axis, int64_t distance) {
  if (axis == axes.size()) return distance == 0;
  int64_t low = 0, high = 0;  // of what the other axes make
  for (size_t other = axis + 1; other < axes.size(); ++other) {
    low += axes[other].least * axes[other].stride;
    high += axes[other].most * axes[other].stride;
  }
  const int64_t stride = axes[axis].stride;
  const int64_t first = std::max(axes[axis].least, ceil_div(distance - high, stride));
  const int64_t last = std::min(axes[axis].most, floor_div(distance - low, stride));
  for (int64_t difference = first; difference <= last; ++difference)
    if (reaches(axes, axis + 1, distance - difference * stride)) return true;
  return false;
}

}  // namespace

std::optional<BoxKind> kind_of(bool adds, const at::Tensor& source, const at::Tensor& target) {
  const bool is_short = target.element_size() <= 8;
  if (!source.defined()) return is_short ? std::optional(BoxKind{BoxWork::kZero}) : std::nullopt;
  if (source.device() != target.device()) return std::nullopt;
  if (!adds && source.scalar_type() == target.scalar_type())
    return is_short ? std::optional(BoxKind{BoxWork::kCopy}) : std::nullopt;
  const std::optional<BoxNumber> from = box_number(source), to = box_number(target);
  const BoxWork work = adds ? BoxWork::kAdd : BoxWork::kConvert;
  if (!from || !to || !has_box_kernel(work, *from, *to)) return std::nullopt;
  return BoxKind{work, *from, *to};
}

std::optional<PackedBox> pack_box(const BoxKind& kind, const at::Tensor& source,
                                  const at::Tensor& target) {
  std::vector<Axis> axes = joined_axes(source, target);
  if (axes.size() > kBoxAxes) return std::nullopt;
  const int64_t numbers = numbers_of_unit(kind, axes, source, target);
  count_in_units(axes, numbers);
  const bool moves_bytes = kind.work == BoxWork::kCopy || kind.work == BoxWork::kZero;
  PackedBox box{.source = source.defined() ? source.data_ptr() : nullptr,
                .target = target.data_ptr(),
                .unit = static_cast<uint32_t>(
                    moves_bytes ? numbers * static_cast<int64_t>(target.element_size()) : numbers)};
  const size_t before = kBoxAxes - axes.size();
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].size > std::numeric_limits<uint32_t>::max()) return std::nullopt;
    box.sizes[before + axis] = static_cast<uint32_t>(axes[axis].size);
    box.source_strides[before + axis] = axes[axis].source;
    box.target_strides[before + axis] = axes[axis].target;
  }
  return box;
}

bool may_meet(const at::Tensor& a, const at::Tensor& b) {
  const Extent of_a(a), of_b(b);
  if (of_a.end <= of_b.begin || of_b.end <= of_a.begin) return false;
  const auto bytes = static_cast<int64_t>(a.element_size());
  const int64_t apart = static_cast<int64_t>(of_b.begin) - static_cast<int64_t>(of_a.begin);
  if (a.dim() != b.dim() || a.element_size() != b.element_size() || apart % bytes != 0) return true;
  std::vector<Difference> axes;
  for (int64_t axis = 0; axis < a.dim(); ++axis) {
    if (a.size(axis) == 1 && b.size(axis) == 1) continue;
    if (a.stride(axis) != b.stride(axis) || a.stride(axis) == 0) return true;
    axes.push_back({a.stride(axis), 1 - b.size(axis), a.size(axis) - 1});
  }
  std::ranges::sort(axes, std::ranges::greater{}, &Difference::stride);
  return reaches(axes, 0, apart / bytes);
}

}  // namespace tessera::cuda

#include "tessera/train/components.h"

#include <algorithm>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr int32_t kOther = -1;  // a pixel of another class

/// Union-find over pixels: a pixel's parent is in the same component, and never a later pixel, so
/// that the root is the component's first pixel.
class Components {
 public:
  explicit Components(int64_t pixels) : parents_(pixels, kOther) {}

  bool has(int64_t pixel) const { return parents_[pixel] != kOther; }
  void add(int64_t pixel) { parents_[pixel] = static_cast<int32_t>(pixel); }
  int32_t root(int64_t pixel) {
    auto at = static_cast<int32_t>(pixel);
    while (parents_[at] != at) {
      parents_[at] = parents_[parents_[at]];
      at = parents_[at];
    }
    return at;
  }
  void join(int64_t a, int64_t b) {
    const int32_t first = root(a), second = root(b);
    parents_[std::max(first, second)] = std::min(first, second);
  }

 private:
  std::vector<int32_t> parents_;
};

}  // namespace

void keep_largest_component(const at::Tensor& classes, int64_t which, int64_t background) {
  TESSERA_CHECK(classes.is_contiguous() && classes.scalar_type() == at::kLong &&
                    classes.numel() < (int64_t{1} << 31),
                "components of {} labels", classes.numel());
  int64_t* const labels = classes.data_ptr<int64_t>();
  Components components(classes.numel());
  for (int64_t pixel = 0; pixel < classes.numel(); ++pixel) {
    if (labels[pixel] != which) continue;
    components.add(pixel);
    for (int64_t axis = 0; axis < classes.dim(); ++axis) {
      const int64_t stride = classes.stride(axis);
      if (pixel / stride % classes.size(axis) > 0 && components.has(pixel - stride))
        components.join(pixel, pixel - stride);
    }
  }
  std::vector<int32_t> sizes(classes.numel(), 0);
  for (int64_t pixel = 0; pixel < classes.numel(); ++pixel)
    if (components.has(pixel)) ++sizes[components.root(pixel)];
  const int64_t largest = std::ranges::max_element(sizes) - sizes.begin();
  for (int64_t pixel = 0; pixel < classes.numel(); ++pixel)
    if (components.has(pixel) && components.root(pixel) != largest) labels[pixel] = background;
}

}  // namespace tessera

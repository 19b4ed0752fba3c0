#include "tessera/data/finite.h"

#include <cmath>

#include "tessera/data/box_rows.h"

namespace tessera {
namespace {

template <class T>
std::optional<Shape> find(const T* data, const Box& box, at::IntArrayRef strides) {
  std::optional<Shape> found;
  const int64_t stride = row_stride(box, strides);
  for_each_row(box, strides, [&](const Position& at, int64_t offset) {
    for (int64_t i = 0; !found && i < row_length(box); ++i) {
      if (std::isfinite(data[offset + i * stride])) continue;
      found = Shape(at.begin(), at.begin() + box.num_axes());
      if (!found->empty()) found->back() += i;
    }
  });
  return found;
}

}  // namespace

std::optional<Shape> first_non_finite(const at::Tensor& tensor) {
  const Box box = Box::whole(tensor.sizes().vec());
  if (tensor.scalar_type() == at::kDouble && tensor.is_cpu())
    return find(tensor.data_ptr<double>(), box, tensor.strides());
  if (tensor.scalar_type() == at::kFloat && tensor.is_cpu())
    return find(tensor.data_ptr<float>(), box, tensor.strides());
  const at::Tensor host = tensor.to(at::kCPU, at::kDouble);
  return find(host.data_ptr<double>(), box, host.strides());
}

}  // namespace tessera

#include "tessera/optim/clip.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"

namespace tessera {
namespace {

constexpr int64_t kBlock = 4096;  // elements: a part of the sum, always the same

/// Sums in eight parts, which the compiler may keep in vector registers without reordering
/// anything.
template <class T>
double block_sum_of_squares(const T* elements, int64_t count) {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double element = static_cast<double>(elements[i + lane]);
      lanes[lane] += element * element;
    }
  for (int64_t lane = 0; i < count; ++i, ++lane) {
    const double element = static_cast<double>(elements[i]);
    lanes[lane] += element * element;
  }
  return std::accumulate(lanes, lanes + kLanes, 0.0);
}

double sum_of_squares(const at::Tensor& gradient) {
  TESSERA_CHECK(gradient.device().is_cpu(), "gradient on {}", gradient.device().str());
  const at::Tensor dense = gradient.contiguous();
  const int64_t count = dense.numel();
  std::vector<double> blocks((count + kBlock - 1) / kBlock);
  AT_DISPATCH_FLOATING_TYPES(dense.scalar_type(), "gradient_norm", [&] {
    const scalar_t* elements = dense.data_ptr<scalar_t>();
    at::parallel_for(0, static_cast<int64_t>(blocks.size()), 8, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        blocks[block] = block_sum_of_squares(elements + block * kBlock,
                                             std::min(kBlock, count - block * kBlock));
    });
  });
  return std::accumulate(blocks.begin(), blocks.end(), 0.0);
}

bool all_hold_all(int num_ranks, const std::vector<Members>& holders) {
  return std::all_of(holders.begin(), holders.end(), [&](const Members& ranks) {
    return static_cast<int>(ranks.size()) == num_ranks;
  });
}

}  // namespace

double gradient_norm(const std::vector<at::Tensor>& gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) sum += sum_of_squares(gradient);
  return std::sqrt(sum);
}

double gradient_norm(Transport& transport, const std::vector<Members>& holders,
                     const std::vector<at::Tensor>& gradients) {
  if (all_hold_all(transport.size(), holders)) return gradient_norm(gradients);
  std::vector<double> squares(gradients.size(), 0.0);
  for (size_t id = 0; id < gradients.size(); ++id)
    if (gradients[id].defined() && holders[id].front() == transport.rank())
      squares[id] = sum_of_squares(gradients[id]);
  Members everyone(transport.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  // All terms of a parameter but one are zero, so its sum is exact.
  AllReduce sum(transport, everyone, squares.data(), static_cast<int64_t>(squares.size()),
                SumType::kFloat64);
  sum.finish();
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

void clip_gradients(const std::vector<at::Tensor>& gradients, double norm, double max_norm) {
  if (!(max_norm > 0 && std::isfinite(max_norm)))
    throw_error<InvalidInput>("[clip] a gradient norm of {} cannot be a limit; give one above 0",
                              max_norm);
  const double scale = max_norm / (norm + 1e-6);
  if (!std::isfinite(norm) || scale >= 1) return;
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) gradient.mul_(scale);
}

}  // namespace tessera

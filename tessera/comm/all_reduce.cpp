#include <algorithm>
#include <cstring>
#include <utility>

#include "tessera/base/collective_traffic.h"
#include "tessera/comm/collectives.h"
#include "tessera/comm/group.h"

namespace tessera {
namespace {

int64_t element_bytes(SumType type) {
  return type == SumType::kFloat32 ? sizeof(float) : sizeof(double);
}

bool is_small(int64_t count, SumType type) {
  return count * element_bytes(type) <= kSmallReduceBytes;
}

/// sum[i] = ((terms[0][i] + terms[1][i]) + terms[2][i]) + ...; `sum` may be one of the terms. In
/// blocks, so that the inner loop is over elements and vectorises without a change of order.
template <class T>
void sum_in_order(const std::vector<const char*>& terms, char* sum, int64_t count) {
  constexpr int64_t kBlock = 512;
  T partial[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    const int64_t offset = begin * static_cast<int64_t>(sizeof(T));
    std::memcpy(partial, terms[0] + offset, size * sizeof(T));
    for (size_t k = 1; k < terms.size(); ++k) {
      const T* term = reinterpret_cast<const T*>(terms[k] + offset);
      for (int64_t i = 0; i < size; ++i) partial[i] += term[i];
    }
    std::memcpy(sum + offset, partial, size * sizeof(T));
  }
}

}  // namespace

AllReduce::AllReduce(Transport& transport, const Group& group, void* data, int64_t count,
                     SumType type)
    : transport_(&transport),
      group_(group),
      member_(member_of(transport, group)),
      data_(static_cast<char*>(data)),
      count_(count),
      type_(type) {
  if (!idle()) round_ = Outstanding(transport, first_round(), "an all-reduce");
}

// Not memberwise: an unfinished round must let go of arrived_ before that is freed, as it does in
// the destructor.
AllReduce& AllReduce::operator=(AllReduce&& other) noexcept {
  if (this == &other) return *this;
  std::destroy_at(this);
  return *std::construct_at(this, std::move(other));
}

bool AllReduce::small() const { return is_small(count_, type_); }

char* AllReduce::chunk(int member) const {
  return data_ + reduce_chunk(count_, group_.size(), member).begin * element_bytes(type_);
}

/// Small: all elements to everyone. Large: chunk j to member j.
Batch AllReduce::first_round() {
  const int size = static_cast<int>(group_.size());
  const int64_t element = element_bytes(type_);
  const int64_t own_bytes =
      (small() ? count_ : reduce_chunk(count_, size, member_).count) * element;
  arrived_ = std::make_unique_for_overwrite<char[]>(own_bytes * (size - 1));
  Batch batch;
  char* slot = arrived_.get();
  for (int j = 0; j < size; ++j) {
    if (j == member_) continue;
    const int64_t sent = small() ? count_ : reduce_chunk(count_, size, j).count;
    if (sent > 0) batch.sends.push_back({group_[j], small() ? data_ : chunk(j), sent * element});
    if (own_bytes > 0) batch.receives.push_back({group_[j], slot, own_bytes});
    slot += own_bytes;
  }
  return batch;
}

/// Large only: the summed chunk of each member to everyone, straight to its place.
Batch AllReduce::second_round() {
  const int size = static_cast<int>(group_.size());
  const int64_t element = element_bytes(type_);
  const int64_t own_count = reduce_chunk(count_, size, member_).count;
  Batch batch;
  for (int j = 0; j < size; ++j) {
    if (j == member_) continue;
    const int64_t other_count = reduce_chunk(count_, size, j).count;
    if (own_count > 0) batch.sends.push_back({group_[j], chunk(member_), own_count * element});
    if (other_count > 0) batch.receives.push_back({group_[j], chunk(j), other_count * element});
  }
  return batch;
}

void AllReduce::sum_arrived() {
  const int size = static_cast<int>(group_.size());
  const int64_t count = small() ? count_ : reduce_chunk(count_, size, member_).count;
  char* own = small() ? data_ : chunk(member_);
  const char* slot = arrived_.get();
  std::vector<const char*> terms;
  for (int j = 0; j < size; ++j) {
    terms.push_back(j == member_ ? own : slot);
    if (j != member_) slot += count * element_bytes(type_);
  }
  if (type_ == SumType::kFloat32)
    sum_in_order<float>(terms, own, count);
  else
    sum_in_order<double>(terms, own, count);
}

void AllReduce::finish() {
  if (idle()) return;
  round_.finish();
  sum_arrived();
  arrived_.reset();
  if (small()) return;
  round_ = Outstanding(*transport_, second_round(), "an all-reduce");
  round_.finish();
}

}  // namespace tessera

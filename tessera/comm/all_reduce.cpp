#include <algorithm>
#include <cstring>
#include <utility>

#include "tessera/comm/collectives.h"
#include "tessera/comm/group.h"

namespace tessera {
namespace {

int64_t element_bytes(SumType type) {
  return type == SumType::kFloat32 ? sizeof(float) : sizeof(double);
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

Elements AllReduce::own_chunk() const {
  return reduce_chunk(count_, element_bytes(type_), std::ssize(group_), member_);
}

/// What arrives waits in a slot for each of the others, until it is summed.
Batch AllReduce::first_round() {
  const int64_t element = element_bytes(type_);
  const CollectiveRound round =
      reduce_terms(static_cast<int>(group_.size()), member_, count_, element);
  const int64_t slot_bytes = own_chunk().count * element;
  arrived_ = std::make_unique_for_overwrite<char[]>(slot_bytes * std::ssize(round.receives));
  Batch batch;
  for (const auto& [member, part] : round.sends)
    batch.sends.push_back({group_[member], data_ + part.begin * element, part.count * element});
  char* slot = arrived_.get();
  for (const auto& [member, part] : round.receives) {
    batch.receives.push_back({group_[member], slot, slot_bytes});
    slot += slot_bytes;
  }
  return batch;
}

/// Sums arrive where they belong.
Batch AllReduce::second_round() {
  const int64_t element = element_bytes(type_);
  const CollectiveRound round =
      reduce_sums(static_cast<int>(group_.size()), member_, count_, element);
  Batch batch;
  for (const auto& [member, part] : round.sends)
    batch.sends.push_back({group_[member], data_ + part.begin * element, part.count * element});
  for (const auto& [member, part] : round.receives)
    batch.receives.push_back({group_[member], data_ + part.begin * element, part.count * element});
  return batch;
}

void AllReduce::sum_arrived() {
  const int size = static_cast<int>(group_.size());
  const auto [begin, count] = own_chunk();
  char* own = data_ + begin * element_bytes(type_);
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
  if (is_small_reduce(count_, element_bytes(type_))) return;
  round_ = Outstanding(*transport_, second_round(), "an all-reduce");
  round_.finish();
}

}  // namespace tessera

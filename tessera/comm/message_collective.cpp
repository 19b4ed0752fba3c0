#include "tessera/comm/message_collective.h"

#include "tessera/base/error.h"
#include "tessera/comm/device_queue.h"

namespace tessera {
namespace {

int64_t bytes_of(SumType type) {
  return type == SumType::kFloat32 ? sizeof(float) : sizeof(double);
}

template <class T>
void add_elements(const char* terms, char* sums, int64_t count) {
  const T* term = reinterpret_cast<const T*>(terms);
  T* sum = reinterpret_cast<T*>(sums);
  for (int64_t i = 0; i < count; ++i) sum[i] += term[i];
}

}  // namespace

MessageCollective::MessageCollective(Transport& messages, const AllReduceCall& call)
    : messages_(&messages),
      name_("an all-reduce"),
      members_(call.members),
      rounds_(reduce_rounds(static_cast<int>(members_.size()), call.own, call.count)),
      data_(static_cast<char*>(call.data)),
      element_bytes_(bytes_of(call.type)),
      type_(call.type),
      queue_(call.queue),
      scratch_(static_cast<char*>(call.scratch)) {
  if (!scratch_) take_scratch(call);
  start_round();
}

MessageCollective::MessageCollective(Transport& messages, const AllGatherCall& call)
    : messages_(&messages),
      name_("an all-gather"),
      members_(call.members),
      rounds_(gather_rounds(call.own, call.block_bytes)),
      data_(static_cast<char*>(call.gathered)),
      queue_(call.queue) {
  start_round();
}

MessageCollective::MessageCollective(Transport& messages, const BroadcastCall& call)
    : messages_(&messages),
      name_("a broadcast"),
      members_(call.members),
      rounds_(broadcast_rounds(static_cast<int>(members_.size()), call.own, call.root, call.bytes)),
      data_(static_cast<char*>(call.data)),
      queue_(call.queue) {
  start_round();
}

/// In a round in which this member has nothing to do, others may still wait for its next.
MessageCollective::~MessageCollective() {
  if (!finishing_ && !round_.started())
    messages_->abort(std::string(name_) + " was left unfinished");
}

void MessageCollective::take_scratch(const AllReduceCall& call) {
  const int64_t count = reduce_scratch(static_cast<int>(members_.size()), call.own, call.count);
  TESSERA_CHECK(!queue_ || count == 0, "a sum on a device needs scratch for {} elements there",
                count);
  own_scratch_ = std::make_unique_for_overwrite<char[]>(element_bytes_ * count);
  scratch_ = own_scratch_.get();
}

void MessageCollective::start_round() {
  const CollectiveRound& round = rounds_[next_round_++];
  if (!round.empty()) round_ = Outstanding(*messages_, batch_of(round), name_);
}

Batch MessageCollective::batch_of(const CollectiveRound& round) const {
  Batch batch;
  batch.queue = queue_;
  for (const auto& [member, part] : round.sends)
    batch.sends.push_back(
        {members_[member], data_ + part.begin * element_bytes_, part.count * element_bytes_});
  char* term = scratch_;
  for (const auto& [member, part] : round.receives) {
    const int64_t bytes = part.count * element_bytes_;
    char* target = round.adds ? term : data_ + part.begin * element_bytes_;
    batch.receives.push_back({members_[member], target, bytes});
    if (round.adds) term += bytes;
  }
  return batch;
}

void MessageCollective::add_arrived(const CollectiveRound& round) const {
  const char* term = scratch_;
  for (const auto& [member, part] : round.receives) {
    char* sum = data_ + part.begin * element_bytes_;
    if (queue_)
      queue_->add(sum, term, part.count, *type_);
    else if (*type_ == SumType::kFloat32)
      add_elements<float>(term, sum, part.count);
    else
      add_elements<double>(term, sum, part.count);
    term += part.count * element_bytes_;
  }
}

void MessageCollective::end_round() {
  if (round_.started()) round_.finish();
  const CollectiveRound& round = rounds_[next_round_ - 1];
  if (round.adds) add_arrived(round);
}

void MessageCollective::advance() {
  if (next_round_ == rounds_.size()) return;
  end_round();
  start_round();
}

void MessageCollective::finish() {
  finishing_ = true;
  while (next_round_ < rounds_.size()) advance();
  end_round();
}

std::unique_ptr<Collective> Transport::start_all_reduce(const AllReduceCall& call,
                                                        Transport& messages) {
  return std::make_unique<MessageCollective>(messages, call);
}

std::unique_ptr<Collective> Transport::start_all_gather(const AllGatherCall& call,
                                                        Transport& messages) {
  return std::make_unique<MessageCollective>(messages, call);
}

std::unique_ptr<Collective> Transport::start_broadcast(const BroadcastCall& call,
                                                       Transport& messages) {
  return std::make_unique<MessageCollective>(messages, call);
}

}  // namespace tessera

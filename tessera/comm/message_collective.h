#pragma once
// A collective made of messages, round by round (base/collective_rounds.h): what a transport does
// that knows nothing better.

#include <memory>
#include <optional>
#include <vector>

#include "tessera/base/collective_rounds.h"
#include "tessera/comm/collective.h"
#include "tessera/comm/outstanding.h"

namespace tessera {

class MessageCollective final : public Collective {
 public:
  MessageCollective(Transport& messages, const AllReduceCall& call);
  MessageCollective(Transport& messages, const AllGatherCall& call);
  MessageCollective(Transport& messages, const BroadcastCall& call);

  ~MessageCollective() override;

  void advance() override;
  void finish() override;

 private:
  void take_scratch(const AllReduceCall& call);
  void start_round();
  void end_round();
  Batch batch_of(const CollectiveRound& round) const;
  void add_arrived(const CollectiveRound& round) const;

  Transport* messages_;
  const char* name_;
  Members members_;
  std::vector<CollectiveRound> rounds_;
  size_t next_round_ = 0;
  char* data_;
  int64_t element_bytes_ = 1;
  std::optional<SumType> type_;  // of an all-reduce
  DeviceQueue* queue_;           // null: in the host's memory
  std::unique_ptr<char[]> own_scratch_;
  char* scratch_ = nullptr;
  bool finishing_ = false;
  Outstanding round_;  // last, to let go of the memory first; not started while a round is empty
};

}  // namespace tessera

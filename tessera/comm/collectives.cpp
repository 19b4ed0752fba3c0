#include "tessera/comm/collectives.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/comm/membership.h"

namespace tessera {
namespace {

/// Consumed even when finish() throws: by then the transport has let go of the memory.
void finish_started(std::unique_ptr<Collective>& started) {
  if (started) std::exchange(started, nullptr)->finish();
}

}  // namespace

int member_of(const Transport& transport, const Members& members) {
  int own = -1, previous = -1;
  for (size_t i = 0; i < members.size(); ++i) {
    TESSERA_CHECK(members[i] > previous && members[i] < transport.size(),
                  "member {} is rank {}; ranks must ascend from 0 to at most {}", i, members[i],
                  transport.size() - 1);
    previous = members[i];
    if (members[i] == transport.rank()) own = static_cast<int>(i);
  }
  TESSERA_CHECK(own >= 0, "rank {} is not among the {} members of what it takes part in",
                transport.rank(), members.size());
  return own;
}

AllReduce::AllReduce(Transport& transport, const Members& members, void* data, int64_t count,
                     SumType type, void* scratch, DeviceQueue* queue) {
  const int own = member_of(transport, members);
  if (members.size() == 1 || count == 0) return;
  started_ =
      transport.start_all_reduce({members, own, data, count, type, scratch, queue}, transport);
}

void AllReduce::advance() {
  if (started_) started_->advance();
}

void AllReduce::finish() { finish_started(started_); }

AllGather::AllGather(Transport& transport, const Members& members,
                     const std::vector<int64_t>& block_bytes, void* gathered, DeviceQueue* queue) {
  const int own = member_of(transport, members);
  TESSERA_CHECK(block_bytes.size() == members.size(), "{} blocks for {} members",
                block_bytes.size(), members.size());
  const bool all_empty =
      std::all_of(block_bytes.begin(), block_bytes.end(), [](int64_t bytes) { return bytes == 0; });
  if (members.size() == 1 || all_empty) return;
  started_ = transport.start_all_gather({members, own, block_bytes, gathered, queue}, transport);
}

void AllGather::finish() { finish_started(started_); }

// Dissemination: in round k, tell the member 2^k ahead and hear from the one 2^k behind. After the
// last round each member has heard, through others, of all.
void barrier(Transport& transport, const Members& members) {
  const int own = member_of(transport, members);
  const int size = static_cast<int>(members.size());
  for (int distance = 1; distance < size; distance *= 2) {
    Batch batch;
    batch.sends.push_back({members[(own + distance) % size], nullptr, 0});
    batch.receives.push_back({members[(own + size - distance) % size], nullptr, 0});
    transport.finish(transport.start(batch));
  }
}

void broadcast(Transport& transport, const Members& members, int root, void* data, int64_t bytes,
               DeviceQueue* queue) {
  const int own = member_of(transport, members);
  const int size = static_cast<int>(members.size());
  TESSERA_CHECK(root >= 0 && root < size, "root {} is not an index in {} members", root, size);
  if (bytes == 0 || size == 1) return;
  transport.start_broadcast({members, own, root, data, bytes, queue}, transport)->finish();
}

}  // namespace tessera

#include "tessera/comm/collectives.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/comm/group.h"

namespace tessera {

int member_of(const Transport& transport, const Group& group) {
  int member = -1, previous = -1;
  for (size_t i = 0; i < group.size(); ++i) {
    TESSERA_CHECK(group[i] > previous && group[i] < transport.size(),
                  "group member {} is rank {}; ranks must ascend from 0 to at most {}", i, group[i],
                  transport.size() - 1);
    previous = group[i];
    if (group[i] == transport.rank()) member = static_cast<int>(i);
  }
  TESSERA_CHECK(member >= 0, "rank {} is not in the group of {} ranks it takes part in",
                transport.rank(), group.size());
  return member;
}

AllGather::AllGather(Transport& transport, const Group& group,
                     const std::vector<int64_t>& block_bytes, void* gathered) {
  const int member = member_of(transport, group);
  const int size = static_cast<int>(group.size());
  TESSERA_CHECK(block_bytes.size() == group.size(), "{} blocks for a group of {}",
                block_bytes.size(), size);
  char* bytes = static_cast<char*>(gathered);
  const CollectiveRound round = gather_blocks(member, block_bytes);
  Batch batch;
  for (const auto& [to, block] : round.sends)
    batch.sends.push_back({group[to], bytes + block.begin, block.count});
  for (const auto& [from, block] : round.receives)
    batch.receives.push_back({group[from], bytes + block.begin, block.count});
  if (batch.sends.empty() && batch.receives.empty()) return;
  round_ = Outstanding(transport, batch, "an all-gather");
}

void AllGather::finish() {
  if (round_.started()) round_.finish();
}

// Dissemination: in round k, tell the member 2^k ahead and hear from the one 2^k behind. After the
// last round each member has heard, through others, of all.
void barrier(Transport& transport, const Group& group) {
  const int member = member_of(transport, group);
  const int size = static_cast<int>(group.size());
  for (int distance = 1; distance < size; distance *= 2) {
    Batch batch;
    batch.sends.push_back({group[(member + distance) % size], nullptr, 0});
    batch.receives.push_back({group[(member + size - distance) % size], nullptr, 0});
    transport.finish(transport.start(batch));
  }
}

void broadcast(Transport& transport, const Group& group, int root, void* data, int64_t bytes) {
  const int member = member_of(transport, group);
  const int size = static_cast<int>(group.size());
  TESSERA_CHECK(root >= 0 && root < size, "root {} is not an index in a group of {}", root, size);
  if (bytes == 0 || size == 1) return;
  Batch batch;
  if (member != root) batch.receives.push_back({group[root], data, bytes});
  for (int j = 0; member == root && j < size; ++j)
    if (j != root) batch.sends.push_back({group[j], data, bytes});
  transport.finish(transport.start(batch));
}

}  // namespace tessera

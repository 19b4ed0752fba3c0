#include "tessera/simulate/posts.h"

#include <algorithm>

#include "tessera/base/collective_traffic.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

size_t index_of(int rank, const Members& members) {
  const auto found = std::find(members.begin(), members.end(), rank);
  TESSERA_CHECK(found != members.end(), "rank {} takes part in a collective of others", rank);
  return static_cast<size_t>(found - members.begin());
}

/// To and from each other member; nothing is posted for no bytes.
template <class Sent, class Received>
Posts with_each(const Members& members, size_t own, Sent sent, Received received) {
  Posts posts;
  for (size_t j = 0; j < members.size(); ++j) {
    if (j == own) continue;
    if (const int64_t bytes = sent(j); bytes > 0) posts.sends.push_back({members[j], bytes});
    if (const int64_t bytes = received(j); bytes > 0) posts.receives.push_back({members[j], bytes});
  }
  return posts;
}

/// A buffer that is summed, as its bytes fall to the members.
struct Reduction {
  Reduction(const Buffer& buffer, const Members& members, at::ScalarType real)
      : element(element_bytes(buffer.element, real)),
        count(buffer.box.volume()),
        num_members(static_cast<int64_t>(members.size())) {}
  int64_t bytes() const { return count * element; }
  bool small() const { return bytes() <= kSmallReduceBytes; }
  int64_t chunk_bytes(size_t member) const {
    return reduce_chunk(count, num_members, static_cast<int64_t>(member)).count * element;
  }
  int64_t element;
  int64_t count;
  int64_t num_members;
};

std::vector<Post> posts_of(const std::vector<Message>& messages, const Program& program,
                           at::ScalarType real) {
  std::vector<Post> posts;
  for (const Message& message : messages)
    posts.push_back({message.peer, buffer_bytes(program.buffers[message.strip], real)});
  return posts;
}

}  // namespace

Posts posts_of(const StartTransfer& transfer, const Program& program, at::ScalarType real) {
  return {posts_of(transfer.sends, program, real), posts_of(transfer.receives, program, real)};
}

Posts posts_of(const StartGather& gather, const Program& program, at::ScalarType real) {
  const Buffer& buffer = program.buffers[gather.buffer];
  const int64_t row_bytes = buffer.box[1].size() * element_bytes(buffer.element, real);
  const size_t own = index_of(program.rank, gather.members);
  return with_each(
      gather.members, own, [&](size_t) { return gather.rows[own] * row_bytes; },
      [&](size_t j) { return gather.rows[j] * row_bytes; });
}

Posts posts_of(const StartReduce& reduce, const Program& program, at::ScalarType real) {
  const Reduction whole(program.buffers[reduce.buffer], reduce.members, real);
  const size_t own = index_of(program.rank, reduce.members);
  return with_each(
      reduce.members, own,
      [&](size_t j) { return whole.small() ? whole.bytes() : whole.chunk_bytes(j); },
      [&](size_t) { return whole.small() ? whole.bytes() : whole.chunk_bytes(own); });
}

Posts posts_of(const FinishReduce& reduce, const Program& program, at::ScalarType real) {
  const Reduction whole(program.buffers[reduce.buffer], reduce.members, real);
  if (whole.small()) return {};
  const size_t own = index_of(program.rank, reduce.members);
  return with_each(
      reduce.members, own, [&](size_t) { return whole.chunk_bytes(own); },
      [&](size_t j) { return whole.chunk_bytes(j); });
}

}  // namespace tessera

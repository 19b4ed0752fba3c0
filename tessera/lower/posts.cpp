#include "tessera/lower/posts.h"

#include <algorithm>

#include "tessera/base/collective_rounds.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

int index_of(int rank, const Members& members) {
  const auto found = std::find(members.begin(), members.end(), rank);
  TESSERA_CHECK(found != members.end(), "rank {} takes part in a collective of others", rank);
  return static_cast<int>(found - members.begin());
}

Posts posts_of(const CollectiveRound& round, const Members& members, int64_t element_bytes) {
  Posts posts;
  for (const auto& [member, elements] : round.sends)
    posts.sends.push_back({members[member], elements.count * element_bytes});
  for (const auto& [member, elements] : round.receives)
    posts.receives.push_back({members[member], elements.count * element_bytes});
  return posts;
}

std::vector<Post> posts_of(const std::vector<Message>& messages, const Program& program,
                           at::ScalarType real) {
  std::vector<Post> posts;
  for (const Message& message : messages)
    posts.push_back({message.peer, buffer_bytes(program.buffers[message.strip], real)});
  return posts;
}

/// `round` is one of a reduction's two.
template <class Round, class Reduce>
Posts posts_of_round(const Round& round, const Reduce& reduce, const Program& program,
                     at::ScalarType real) {
  const Buffer& buffer = program.buffers[reduce.buffer];
  const int64_t bytes = element_bytes(buffer.element, real);
  return posts_of(round(static_cast<int>(reduce.members.size()),
                        index_of(program.rank, reduce.members), buffer.box.volume(), bytes),
                  reduce.members, bytes);
}

}  // namespace

Posts posts_of(const StartTransfer& transfer, const Program& program, at::ScalarType real) {
  return {posts_of(transfer.sends, program, real), posts_of(transfer.receives, program, real)};
}

Posts posts_of(const StartGather& gather, const Program& program, at::ScalarType real) {
  const Buffer& buffer = program.buffers[gather.buffer];
  const int64_t row_bytes = buffer.box[1].size() * element_bytes(buffer.element, real);
  return posts_of(gather_blocks(index_of(program.rank, gather.members), gather.rows),
                  gather.members, row_bytes);
}

Posts posts_of(const StartReduce& reduce, const Program& program, at::ScalarType real) {
  return posts_of_round(reduce_terms, reduce, program, real);
}

Posts posts_of(const FinishReduce& reduce, const Program& program, at::ScalarType real) {
  return posts_of_round(reduce_sums, reduce, program, real);
}

}  // namespace tessera

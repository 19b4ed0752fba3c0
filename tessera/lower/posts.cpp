#include "tessera/lower/posts.h"

#include <algorithm>
#include <span>

#include "tessera/base/collective_rounds.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

int index_of(int rank, const Members& members) {
  const auto found = std::find(members.begin(), members.end(), rank);
  TESSERA_CHECK(found != members.end(), "rank {} takes part in a collective of others", rank);
  return static_cast<int>(found - members.begin());
}

Posts posts_of(std::span<const CollectiveRound> rounds, const Members& members,
               int64_t element_bytes) {
  Posts posts;
  for (const CollectiveRound& round : rounds) {
    for (const auto& [member, elements] : round.sends)
      posts.sends.push_back({members[member], elements.count * element_bytes});
    for (const auto& [member, elements] : round.receives)
      posts.receives.push_back({members[member], elements.count * element_bytes});
  }
  return posts;
}

std::vector<Post> posts_of(const std::vector<Message>& messages, const Program& program,
                           at::ScalarType real) {
  std::vector<Post> posts;
  for (const Message& message : messages)
    posts.push_back({message.peer, buffer_bytes(program.buffers[message.strip], real)});
  return posts;
}

/// The first round of a reduction, or all the others.
template <class Reduce>
Posts posts_of_rounds(const Reduce& reduce, const Program& program, at::ScalarType real,
                      bool first) {
  const Buffer& buffer = program.buffers[reduce.buffer];
  const std::vector<CollectiveRound> rounds =
      reduce_rounds(static_cast<int>(reduce.members.size()), index_of(program.rank, reduce.members),
                    buffer.box.volume());
  const size_t end_of_first = std::min<size_t>(1, rounds.size());
  const std::span<const CollectiveRound> all(rounds);
  return posts_of(first ? all.first(end_of_first) : all.subspan(end_of_first), reduce.members,
                  element_bytes(buffer.element, real));
}

}  // namespace

Posts posts_of(const StartTransfer& transfer, const Program& program, at::ScalarType real) {
  return {posts_of(transfer.sends, program, real), posts_of(transfer.receives, program, real)};
}

Posts posts_of(const StartGather& gather, const Program& program, at::ScalarType real) {
  const Buffer& buffer = program.buffers[gather.buffer];
  const int64_t row_bytes = buffer.box[1].size() * element_bytes(buffer.element, real);
  return posts_of(gather_rounds(index_of(program.rank, gather.members), gather.rows),
                  gather.members, row_bytes);
}

Posts posts_of(const StartReduce& reduce, const Program& program, at::ScalarType real) {
  return posts_of_rounds(reduce, program, real, true);
}

Posts posts_of(const FinishReduce& reduce, const Program& program, at::ScalarType real) {
  return posts_of_rounds(reduce, program, real, false);
}

}  // namespace tessera

#include "tessera/lower/posts.h"

#include <algorithm>

#include "tessera/base/collective_rounds.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

std::vector<Post> posts_of(const std::vector<Message>& messages, const Program& program,
                           at::ScalarType real) {
  std::vector<Post> posts;
  for (const Message& message : messages)
    posts.push_back({message.peer, buffer_bytes(program.buffers[message.strip], real)});
  return posts;
}

std::vector<Post> posts_of(const std::vector<MemberMessage>& messages, const Members& members,
                           int64_t element_bytes) {
  std::vector<Post> posts;
  for (const auto& [member, elements] : messages)
    posts.push_back({members[member], elements.count * element_bytes});
  return posts;
}

/// All rounds of a reduction, as one of its members posts them.
template <class Reduce>
std::vector<Posts> rounds_of(const Reduce& reduce, const Program& program, int rank,
                             at::ScalarType real) {
  const auto found = std::ranges::lower_bound(reduce.members, rank);
  TESSERA_CHECK(found != reduce.members.end() && *found == rank,
                "rank {} takes part in a reduction of others", rank);
  const Buffer& buffer = program.buffers[reduce.buffer];
  const int64_t bytes = element_bytes(buffer.element, real);
  std::vector<Posts> rounds;
  for (const CollectiveRound& round :
       reduce_rounds(static_cast<int>(reduce.members.size()),
                     static_cast<int>(found - reduce.members.begin()), buffer.box.volume()))
    rounds.push_back({posts_of(round.sends, reduce.members, bytes),
                      posts_of(round.receives, reduce.members, bytes)});
  return rounds;
}

}  // namespace

Communication communication_of(const Instruction& instruction, const Program& program, int rank,
                               at::ScalarType real) {
  using Waits = Communication::Waits;
  if (const auto* start = std::get_if<StartTransfer>(&instruction))
    return {start->channel,
            Waits::kNot,
            0,
            {{posts_of(start->sends, program, real), posts_of(start->receives, program, real)}}};
  if (const auto* finish = std::get_if<FinishTransfer>(&instruction))
    return {finish->channel, Waits::kBeforeAndAfter, 1, {}};
  if (const auto* start = std::get_if<StartReduce>(&instruction)) {
    std::vector<Posts> rounds = rounds_of(*start, program, rank, real);
    rounds.resize(std::min<size_t>(rounds.size(), 1));
    return {start->channel, Waits::kNot, 0, std::move(rounds)};
  }
  if (const auto* advance = std::get_if<AdvanceReduce>(&instruction))
    return {advance->channel,
            Waits::kBefore,
            advance->round,
            {rounds_of(*advance, program, rank, real).at(advance->round)}};
  if (const auto* finish = std::get_if<FinishReduce>(&instruction)) {
    std::vector<Posts> rounds = rounds_of(*finish, program, rank, real);
    rounds.erase(rounds.begin(), rounds.begin() + finish->posted);
    return {finish->channel, Waits::kBeforeAndAfter, finish->posted, std::move(rounds)};
  }
  return {};
}

}  // namespace tessera

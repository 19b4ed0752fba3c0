#include <deque>
#include <map>

#include "tessera/base/error.h"
#include "tessera/lower/checker.h"
#include "tessera/lower/posts.h"

namespace tessera {
namespace {

/// One message of a pair as both ends describe it; equal descriptions match.
struct Described {
  int channel = 0;
  int round = 0;
  int64_t bytes = 0;
  bool operator==(const Described&) const = default;
};

/// Runs the communication of all programs with rendezvous semantics and no data.
class MessageCheck {
 public:
  explicit MessageCheck(const std::vector<Program>& programs) : programs_(programs) {
    for (const Program& program : programs) {
      walks_.emplace_back();
      arrive(program.rank);
    }
  }

  void run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < std::ssize(programs_); ++rank)
        while (advance(rank)) moved = true;
    }
    for (int rank = 0; rank < std::ssize(programs_); ++rank)
      TESSERA_CHECK(ended(rank), "rank {} waits for ever at instruction {}", rank, walks_[rank].at);
    for (const auto& [pair, queue] : sent_)
      TESSERA_CHECK(queue.empty(), "rank {} sends channel {} to rank {}, which never receives it",
                    pair.first, queue.front().channel, pair.second);
    for (const auto& [pair, queue] : expected_)
      TESSERA_CHECK(queue.empty(), "rank {} waits for channel {} of rank {}, which never sends it",
                    pair.second, queue.front().channel, pair.first);
  }

 private:
  using Pair = std::pair<int, int>;  // from, to
  using Queues = std::map<Pair, std::deque<Described>>;

  struct Walk {
    size_t at = 0;
    Communication now;        // of the instruction there
    size_t posted = 0;        // rounds of it
    std::map<int, int> open;  // unmatched messages of a channel
  };

  bool ended(int rank) const { return walks_[rank].at == programs_[rank].instructions.size(); }

  void arrive(int rank) {
    Walk& walk = walks_[rank];
    walk.posted = 0;
    if (!ended(rank))
      walk.now = communication_of(programs_[rank].instructions[walk.at], programs_[rank], rank,
                                  at::kDouble);
  }

  /// Does the next thing that need not wait: posts a round, or passes the instruction.
  bool advance(int rank) {
    if (ended(rank)) return false;
    Walk& walk = walks_[rank];
    if (walk.now.waits_after(walk.posted) && walk.open[walk.now.channel] > 0) return false;
    if (walk.posted < walk.now.rounds.size()) {
      post(rank, walk.now.rounds[walk.posted]);
      ++walk.posted;
      return true;
    }
    ++walk.at;
    arrive(rank);
    return true;
  }

  void post(int rank, const Posts& posts) {
    Walk& walk = walks_[rank];
    const int channel = walk.now.channel;
    const int round = walk.now.first_round + static_cast<int>(walk.posted);
    for (const Post& send : posts.sends) {
      ++walk.open[channel];
      match({rank, send.peer}, {channel, round, send.bytes}, &sent_, &expected_);
    }
    for (const Post& receive : posts.receives) {
      ++walk.open[channel];
      match({receive.peer, rank}, {channel, round, receive.bytes}, &expected_, &sent_);
    }
  }

  void match(Pair pair, const Described& post, Queues* own, Queues* other) {
    std::deque<Described>& waiting = (*other)[pair];
    if (waiting.empty()) {
      (*own)[pair].push_back(post);
      return;
    }
    const Described& partner = waiting.front();
    TESSERA_CHECK(partner == post,
                  "messages from rank {} to rank {} cross: channel {} round {} ({} bytes) meets "
                  "channel {} round {} ({} bytes)",
                  pair.first, pair.second, post.channel, post.round, post.bytes, partner.channel,
                  partner.round, partner.bytes);
    waiting.pop_front();
    --walks_[pair.first].open[post.channel];
    --walks_[pair.second].open[post.channel];
  }

  const std::vector<Program>& programs_;
  std::vector<Walk> walks_;
  Queues sent_;
  Queues expected_;
};

}  // namespace

void check_messages(const std::vector<Program>& programs) { MessageCheck(programs).run(); }

}  // namespace tessera

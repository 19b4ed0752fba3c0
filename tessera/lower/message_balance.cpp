#include "tessera/lower/message_balance.h"

#include <map>

#include "tessera/lower/posts.h"

namespace tessera {
namespace {

uint64_t mix(uint64_t hash, uint64_t number) {
  hash = (hash ^ number) * 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
  return hash ^ (hash >> 29);
}

/// The messages from one rank to another so far, in their order.
class PairHash {
 public:
  void add(int channel, int round, int64_t bytes) {
    hash_ = mix(mix(mix(hash_, static_cast<uint64_t>(channel)), static_cast<uint64_t>(round)),
                static_cast<uint64_t>(bytes));
  }
  uint64_t of(int from, int to) const {
    return mix(mix(hash_, static_cast<uint64_t>(from)), static_cast<uint64_t>(to));
  }

 private:
  uint64_t hash_ = 1;
};

}  // namespace

uint64_t message_balance(const Program& program) {
  std::map<int, PairHash> sent, received;  // by peer
  for (const Instruction& instruction : program.instructions) {
    const Communication now = communication_of(instruction, program, program.rank, at::kDouble);
    for (size_t i = 0; i < now.rounds.size(); ++i) {
      const int round = now.first_round + static_cast<int>(i);
      for (const Post& post : now.rounds[i].sends)
        sent[post.peer].add(now.channel, round, post.bytes);
      for (const Post& post : now.rounds[i].receives)
        received[post.peer].add(now.channel, round, post.bytes);
    }
  }
  uint64_t balance = 0;
  for (const auto& [peer, hash] : sent) balance += hash.of(program.rank, peer);
  for (const auto& [peer, hash] : received) balance -= hash.of(peer, program.rank);
  return balance;
}

}  // namespace tessera

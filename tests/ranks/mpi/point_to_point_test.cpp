// Batches of messages over MPI: what is sent arrives, in order, whatever the sizes, the chunks and
// the order of the waits.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/comm/mpi/mpi.h"
#include "tests/ranks/comm/pattern.h"
#include "tests/ranks/mpi/world.h"

namespace tessera::point_to_point_test {
namespace {

int after(int rank, int steps = 1) { return (rank + steps) % world().size(); }
int before(int rank, int steps = 1) {
  return ((rank - steps) % world().size() + world().size()) % world().size();
}

TEST(MpiPointToPoint, RingPassesMessagesOn) {
  const int rank = world().rank(), size = world().size();
  int value = rank;
  for (int step = 0; step < size; ++step) {
    int arrived = -1;
    Batch batch;
    batch.sends.push_back({after(rank), &value, sizeof(int)});
    batch.receives.push_back({before(rank), &arrived, sizeof(int)});
    world().finish(world().start(batch));
    value = arrived;
    EXPECT_EQ(value, before(rank, step + 1));
  }
}

/// Around the limit up to which a message travels in its envelope, and around those of chunks.
TEST(MpiPointToPoint, SizesAroundTheLimitsArriveWhole) {
  const int rank = world().rank();
  for (int64_t bytes : {0, 1, 3999, 4000, 4001, 4002, 8001, 8002, 8003, 30011, 60022, 60023}) {
    const std::vector<char> sent = pattern(rank, bytes);
    std::vector<char> received(bytes);
    Batch batch;
    batch.sends.push_back({after(rank), sent.data(), bytes});
    batch.receives.push_back({before(rank), received.data(), bytes});
    world().finish(world().start(batch));
    EXPECT_EQ(received, pattern(before(rank), bytes)) << bytes << " bytes";
  }
}

TEST(MpiPointToPoint, LongMessagesArriveWhole) {
  constexpr int64_t kBytes = 20'000'001;
  const int rank = world().rank();
  const std::vector<char> sent = pattern(rank, kBytes);
  std::vector<char> received(kBytes);
  Batch batch;
  batch.sends.push_back({after(rank), sent.data(), kBytes});
  batch.receives.push_back({before(rank), received.data(), kBytes});
  world().finish(world().start(batch));
  EXPECT_TRUE(received == pattern(before(rank), kBytes));
}

/// Sizes of the messages of one round: sizes[from][to] is a list. The same on every rank.
using Sizes = std::vector<std::vector<std::vector<int64_t>>>;

Sizes random_sizes(std::mt19937_64& random) {
  Sizes sizes(world().size(), std::vector<std::vector<int64_t>>(world().size()));
  for (auto& row : sizes)
    for (auto& list : row)
      for (uint64_t n = random() % 4; n > 0; --n) list.push_back(random_size(random));
  return sizes;
}

/// One rank's part of a round: a batch per peer, started and finished in random orders.
void exchange(const Sizes& sizes, std::mt19937_64& random) {
  const int rank = world().rank();
  std::vector<std::vector<char>> sent, received, expected;
  std::vector<int> peers = everyone();
  std::shuffle(peers.begin(), peers.end(), random);
  std::vector<Ticket> tickets;
  for (int peer : peers) {
    Batch batch;
    for (size_t n = 0; n < sizes[rank][peer].size(); ++n) {
      sent.push_back(pattern(message_id(rank, peer, n), sizes[rank][peer][n]));
      batch.sends.push_back({peer, sent.back().data(), sizes[rank][peer][n]});
    }
    for (size_t n = 0; n < sizes[peer][rank].size(); ++n) {
      expected.push_back(pattern(message_id(peer, rank, n), sizes[peer][rank][n]));
      received.emplace_back(sizes[peer][rank][n]);
      batch.receives.push_back({peer, received.back().data(), sizes[peer][rank][n]});
    }
    tickets.push_back(world().start(batch));
  }
  std::shuffle(tickets.begin(), tickets.end(), random);
  for (Ticket ticket : tickets) world().finish(ticket);
  EXPECT_EQ(received, expected);
}

TEST(MpiPointToPoint, RandomTrafficBetweenAllPairsArrives) {
  const uint64_t seed = 1000 + world().size();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 common(seed), own(seed * 100 + world().rank());
  for (int round = 0; round < 40; ++round) exchange(random_sizes(common), own);
}

TEST(MpiPointToPoint, MessagesOfAPairMatchByOrder) {
  constexpr int kNumMessages = 300;
  // Every third is long, so that it takes the longer way and must not be overtaken.
  const auto bytes_of = [](int n) { return n % 3 ? sizeof(int) : 20'000; };
  const int rank = world().rank();
  std::vector<std::vector<char>> sent, received;
  std::vector<Ticket> tickets;
  Batch all;  // one batch each on one side, a single batch on the other
  for (int n = 0; n < kNumMessages; ++n) {
    sent.push_back(pattern(message_id(rank, after(rank), n), bytes_of(n)));
    received.emplace_back(bytes_of(n));
    Batch one;
    one.sends.push_back({after(rank), sent[n].data(), std::ssize(sent[n])});
    all.receives.push_back({before(rank), received[n].data(), std::ssize(received[n])});
    tickets.push_back(world().start(one));
  }
  tickets.push_back(world().start(all));
  for (Ticket ticket : tickets) world().finish(ticket);
  for (int n = 0; n < kNumMessages; ++n)
    EXPECT_EQ(received[n], pattern(message_id(before(rank), rank, n), bytes_of(n))) << n;
}

TEST(MpiPointToPoint, TicketsFinishInAnyOrder) {
  constexpr int kNumTickets = 300;
  const int rank = world().rank();
  std::vector<int> sent(kNumTickets), received(kNumTickets, -1), order(kNumTickets);
  std::vector<Ticket> tickets(kNumTickets);
  for (int n = 0; n < kNumTickets; ++n) {
    sent[n] = rank * kNumTickets + n;
    Batch batch;  // every so often to itself
    batch.sends.push_back({after(rank, n), &sent[n], sizeof(int)});
    batch.receives.push_back({before(rank, n), &received[n], sizeof(int)});
    tickets[n] = world().start(batch);
  }
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(rank));
  for (int n : order) {
    world().finish(tickets[n]);
    EXPECT_EQ(received[n], before(rank, n) * kNumTickets + n);
  }
}

TEST(MpiPointToPoint, AMessageToOneselfMayCrossBatches) {
  const int rank = world().rank(), first = 7;
  const std::vector<char> second = pattern(rank, 50'000);
  int a = 0;
  std::vector<char> b(50'000);
  Batch sends, receives;
  sends.sends = {{rank, &first, sizeof(int)}, {rank, second.data(), 50'000}};
  receives.receives = {{rank, &a, sizeof(int)}, {rank, b.data(), 50'000}};
  const Ticket received = world().start(receives);
  const Ticket sent = world().start(sends);
  world().finish(received);
  world().finish(sent);
  EXPECT_EQ(a, 7);
  EXPECT_EQ(b, second);
}

TEST(MpiPointToPoint, AnEmptyBatchFinishesAndAnEmptyMessageMatches) {
  world().finish(world().start({}));
  const int rank = world().rank();
  int value = rank, arrived = -1;
  Batch batch;
  batch.sends = {{after(rank), nullptr, 0}, {after(rank), &value, sizeof(int)}};
  batch.receives = {{before(rank), nullptr, 0}, {before(rank), &arrived, sizeof(int)}};
  world().finish(world().start(batch));
  EXPECT_EQ(arrived, before(rank));
}

TEST(MpiPointToPoint, MisuseIsNamed) {
  Batch nowhere, negative;
  nowhere.sends.push_back({world().size(), nullptr, 0});
  negative.receives.push_back({0, nullptr, -1});
  EXPECT_THROW(world().start(nowhere), InternalError);
  EXPECT_THROW(world().start(negative), InternalError);
  const Ticket ticket = world().start({});
  world().finish(ticket);
  EXPECT_THROW(world().finish(ticket), InternalError);
  EXPECT_THROW(mpi::create(), InternalError) << "one world at a time";
  mpi::Options options;
  options.chunk_bytes = 0;
  EXPECT_THROW(mpi::create(options), InvalidInput);
  options = {.timeout = std::chrono::milliseconds(0)};
  EXPECT_THROW(mpi::create(options), InvalidInput);
}

}  // namespace
}  // namespace tessera::point_to_point_test

// Batches of messages over the threads transport: what is sent arrives, in order, whatever the
// sizes and the order of the waits.

#include <algorithm>
#include <numeric>
#include <string>

#include "tessera/base/error.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/pattern.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::point_to_point_test {
namespace {

class PointToPoint : public WatchedTest {};

TEST_F(PointToPoint, RingPassesMessagesOn) {
  for (int size = 1; size <= 9; ++size) {
    threads::run_ranks(size, [size](Transport& transport) {
      const int rank = transport.rank();
      const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
      int value = rank;
      for (int step = 0; step < size; ++step) {
        int arrived = -1;
        Batch batch;
        batch.sends.push_back({next, &value, sizeof(int)});
        batch.receives.push_back({previous, &arrived, sizeof(int)});
        transport.finish(transport.start(batch));
        value = arrived;
        EXPECT_EQ(value, (rank + size - 1 - step) % size);
      }
      EXPECT_EQ(value, rank);
    });
  }
}

/// Sizes of the messages of one round: sizes[from][to] is a list. The same on every rank.
using Sizes = std::vector<std::vector<std::vector<int64_t>>>;

Sizes random_sizes(int size, std::mt19937_64& random) {
  Sizes sizes(size, std::vector<std::vector<int64_t>>(size));
  for (auto& row : sizes)
    for (auto& list : row)
      for (uint64_t n = random() % 4; n > 0; --n) list.push_back(random_size(random));
  return sizes;
}

/// One rank's part of a round: a batch per peer, started and finished in random orders.
void exchange(Transport& transport, const Sizes& sizes, std::mt19937_64& random) {
  const int rank = transport.rank(), size = transport.size();
  std::vector<std::vector<char>> sent, received, expected;
  std::vector<int> peers(size);
  std::iota(peers.begin(), peers.end(), 0);
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
    tickets.push_back(transport.start(batch));
  }
  std::shuffle(tickets.begin(), tickets.end(), random);
  for (Ticket ticket : tickets) transport.finish(ticket);
  EXPECT_EQ(received, expected);
}

TEST_F(PointToPoint, RandomTrafficBetweenAllPairsArrives) {
  for (int size = 1; size <= 9; ++size) {
    const uint64_t seed = 1000 + size;
    std::mt19937_64 random(seed);
    std::vector<Sizes> rounds;
    for (int round = 0; round < 8; ++round) rounds.push_back(random_sizes(size, random));
    threads::run_ranks(size, [&](Transport& transport) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937_64 own(seed * 100 + transport.rank());
      for (const Sizes& sizes : rounds) exchange(transport, sizes, own);
    });
  }
}

TEST_F(PointToPoint, LongMessagesArriveWhole) {
  constexpr int64_t kBytes = 5'000'001;
  threads::run_ranks(3, [](Transport& transport) {
    const int rank = transport.rank(), next = (rank + 1) % 3, previous = (rank + 2) % 3;
    const std::vector<char> sent = pattern(rank, kBytes);
    std::vector<char> received(kBytes);
    Batch batch;
    batch.sends.push_back({next, sent.data(), kBytes});
    batch.receives.push_back({previous, received.data(), kBytes});
    transport.finish(transport.start(batch));
    EXPECT_EQ(received, pattern(previous, kBytes));
  });
}

TEST_F(PointToPoint, MessagesOfAPairMatchByOrder) {
  constexpr int kNumMessages = 200;
  threads::run_ranks(2, [](Transport& transport) {
    std::vector<int> values(kNumMessages);
    if (transport.rank() == 0) std::iota(values.begin(), values.end(), 0);
    // One batch each on one side, a single batch on the other.
    std::vector<Ticket> tickets;
    Batch all;
    for (int& value : values) {
      if (transport.rank() == 0) {
        Batch one;
        one.sends.push_back({1, &value, sizeof(int)});
        tickets.push_back(transport.start(one));
      } else {
        all.receives.push_back({0, &value, sizeof(int)});
      }
    }
    if (transport.rank() == 1) tickets.push_back(transport.start(all));
    for (Ticket ticket : tickets) transport.finish(ticket);
    for (int n = 0; n < kNumMessages; ++n) EXPECT_EQ(values[n], n);
  });
}

TEST_F(PointToPoint, TicketsFinishInAnyOrder) {
  constexpr int kNumTickets = 300;
  threads::run_ranks(4, [](Transport& transport) {
    const int rank = transport.rank();
    std::vector<int> sent(kNumTickets), received(kNumTickets, -1);
    std::vector<Ticket> tickets(kNumTickets);
    for (int n = 0; n < kNumTickets; ++n) {
      sent[n] = rank * kNumTickets + n;
      const int step = n % 4;  // 0: to itself
      Batch batch;
      batch.sends.push_back({(rank + step) % 4, &sent[n], sizeof(int)});
      batch.receives.push_back({(rank + 4 - step) % 4, &received[n], sizeof(int)});
      tickets[n] = transport.start(batch);
    }
    std::vector<int> order(kNumTickets);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(rank));
    for (int n : order) {
      transport.finish(tickets[n]);
      EXPECT_EQ(received[n], ((rank + 4 - n % 4) % 4) * kNumTickets + n);
    }
  });
}

TEST_F(PointToPoint, AMessageToOneselfMayCrossBatches) {
  threads::run_ranks(1, [](Transport& transport) {
    const int first = 7, second = 8;
    int a = 0, b = 0;
    Batch sends, receives;
    sends.sends = {{0, &first, sizeof(int)}, {0, &second, sizeof(int)}};
    receives.receives = {{0, &a, sizeof(int)}, {0, &b, sizeof(int)}};
    const Ticket received = transport.start(receives);
    const Ticket sent = transport.start(sends);
    transport.finish(received);
    transport.finish(sent);
    EXPECT_EQ(a, 7);
    EXPECT_EQ(b, 8);
  });
}

TEST_F(PointToPoint, AnEmptyBatchFinishesAndAnEmptyMessageMatches) {
  threads::run_ranks(2, [](Transport& transport) {
    transport.finish(transport.start({}));
    const int other = 1 - transport.rank();
    int value = transport.rank(), arrived = -1;
    Batch batch;
    batch.sends = {{other, nullptr, 0}, {other, &value, sizeof(int)}};
    batch.receives = {{other, nullptr, 0}, {other, &arrived, sizeof(int)}};
    transport.finish(transport.start(batch));
    EXPECT_EQ(arrived, other);
  });
}

TEST_F(PointToPoint, MisuseIsNamed) {
  auto world = threads::create(2);
  Batch nowhere, negative;
  nowhere.sends.push_back({2, nullptr, 0});
  negative.receives.push_back({1, nullptr, -1});
  EXPECT_THROW(world[0]->start(nowhere), InternalError);
  EXPECT_THROW(world[0]->start(negative), InternalError);
  const Ticket ticket = world[0]->start({});
  world[0]->finish(ticket);
  EXPECT_THROW(world[0]->finish(ticket), InternalError);
  EXPECT_THROW(threads::create(0), InvalidInput);
  EXPECT_THROW(threads::create(2, {std::chrono::milliseconds(0)}), InvalidInput);
}

TEST_F(PointToPoint, TheLongestTimeoutDoesNotOverflow) {
  threads::run_ranks(2,
                     [](Transport& transport) {
                       const int other = 1 - transport.rank();
                       if (transport.rank() == 0)
                         std::this_thread::sleep_for(std::chrono::milliseconds(20));
                       Batch batch;
                       batch.sends.push_back({other, nullptr, 0});
                       batch.receives.push_back({other, nullptr, 0});
                       transport.finish(transport.start(batch));
                     },
                     {std::chrono::milliseconds::max()});
}

}  // namespace
}  // namespace tessera::point_to_point_test

// A rank that throws, is made to fail, or ends too early: the others end at once and name it. The
// timeout here is longer than the watchdog's patience, so it cannot be what ends them.

#include "tessera/comm/collectives.h"
#include "tessera/comm/decorators.h"
#include "tessera/comm/threads/world.h"
#include "tests/fault/comm/outcome.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::leaving_test {
namespace {

class Leaving : public WatchedTest {
 protected:
  static constexpr threads::Options kLong{std::chrono::minutes(10)};
};

const Members kAll = {0, 1, 2, 3};

TEST_F(Leaving, AnExceptionOfOneRankEndsAll) {
  const Outcome outcome = outcome_of(4, kLong, [](Transport& transport) {
    for (int step = 0; step < 5; ++step) {
      if (transport.rank() == 1 && step == 3) throw_error<InvalidInput>("[data] file 7 is empty");
      barrier(transport, kAll);
    }
  });
  expect_all_others_say(outcome, 1, "rank 1 failed: [data] file 7 is empty");
  EXPECT_EQ(outcome.rethrown, "[data] rank 1/4: file 7 is empty");
}

TEST_F(Leaving, AFailingTransportEndsAll) {
  World world = threads::create(4, kLong);
  world[3] = failing(std::move(world[3]), 4, Failure::kThrow);
  const Outcome outcome = outcome_of(world, [](Transport& transport) {
    for (int step = 0; step < 100; ++step) barrier(transport, kAll);
  });
  expect_all_others_say(outcome, 3, "rank 3 failed: made to fail after 4 batches");
  EXPECT_EQ(outcome.rethrown, "[failing] rank 3/4: made to fail after 4 batches");
}

TEST_F(Leaving, ARankThatEndsEarlyIsNamedByThoseWhoWaitForIt) {
  const Outcome outcome = outcome_of(4, kLong, [](Transport& transport) {
    barrier(transport, kAll);
    if (transport.rank() == 2) return;
    for (int step = 0; step < 3; ++step) barrier(transport, kAll);
  });
  expect_all_others_say(outcome, 2, "rank 2 failed: it ended while rank ");
  EXPECT_TRUE(outcome.comm_errors[2].empty());
}

TEST_F(Leaving, BothDirectionsOfAnEarlyEndAreNamed) {
  char data[16];
  const auto wait_for_rank_1 = [&](const Batch& batch) {
    return outcome_of(2, kLong, [&](Transport& transport) {
      if (transport.rank() == 0) transport.finish(transport.start(batch));
    });
  };
  Batch send, receive;
  send.sends.push_back({1, data, 16});
  receive.receives.push_back({1, data, 8});
  EXPECT_EQ(wait_for_rank_1(send).rethrown,
            "[comm] rank 0/2: rank 1 failed: it ended while rank 0 has 16 bytes for it; all ranks "
            "must post the same messages");
  EXPECT_EQ(wait_for_rank_1(receive).rethrown,
            "[comm] rank 0/2: rank 1 failed: it ended while rank 0 expects 8 bytes from it; all "
            "ranks must post the same messages");
}

TEST_F(Leaving, WhatWasSentBeforeLeavingStillArrives) {
  for (int round = 0; round < 50; ++round)
    threads::run_ranks(3, [](Transport& transport) {
      int value = transport.rank();
      broadcast(transport, {0, 1, 2}, 0, &value, sizeof(value));
      EXPECT_EQ(value, 0);
    });
}

TEST_F(Leaving, FutureCallsThrowAfterAnAbort) {
  World world = threads::create(2, kLong);
  int value = 0;
  Batch batch;
  batch.receives.push_back({1, &value, sizeof(value)});
  const Ticket ticket = world[0]->start(batch);
  world[1]->abort("the first reason");
  world[1]->abort("a second reason");
  const auto expect_reason = [](const auto& call) {
    try {
      call();
      FAIL();
    } catch (const CommError& e) {
      expect_contains(e.what(), "the first reason");
    }
  };
  expect_reason([&] { world[0]->finish(ticket); });
  expect_reason([&] { world[0]->start(batch); });
  expect_reason([&] { world[1]->start({}); });
}

/// A rank queues a message and then looks whether its peer is there. Once in ten thousand networks
/// the peer had met the message and left in between, and was taken for one that had failed.
TEST_F(Leaving, APeerThatMetTheMessageMayLeaveBeforeItsPosterLooks) {
  threads::World world(2, kLong);
  threads::MailedMessage receive{{.as = PostedAs::kReceive, .peer = 1, .bytes = 8}};
  threads::MailedMessage send{{.as = PostedAs::kSend, .peer = 0, .bytes = 8}};
  ASSERT_EQ(world.mailbox(1, 0).post(receive), nullptr);
  ASSERT_EQ(world.mailbox(1, 0).post(send), &receive);
  world.leave(1);
  world.check_peer_present(0, receive);
  EXPECT_FALSE(world.aborted());

  threads::MailedMessage late{{.as = PostedAs::kReceive, .peer = 1, .bytes = 8}};
  ASSERT_EQ(world.mailbox(1, 0).post(late), nullptr);
  world.check_peer_present(0, late);
  EXPECT_TRUE(world.aborted());
  EXPECT_TRUE(world.mailbox(1, 0).withdraw(late));
}

/// Also to a thread that drives no rank, and through decorators.
TEST_F(Leaving, AWorldThatHasFailedSaysSo) {
  auto world = threads::create(3);
  world[2] = recording(std::move(world[2]), nullptr);
  for (const auto& transport : world) EXPECT_FALSE(transport->failed());
  world[1]->abort("enough");
  std::jthread([&] {
    for (const auto& transport : world) EXPECT_TRUE(transport->failed());
  });
}

}  // namespace
}  // namespace tessera::leaving_test

// A transport that brings collectives of its own: decorators hand them through, and see the
// messages of those that it does not bring.

#include "tessera/comm/borrowed.h"
#include "tessera/comm/collectives.h"
#include "tessera/comm/decorators.h"
#include "tessera/comm/forwarding.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::native_test {
namespace {

class Native : public WatchedTest {};

struct Calls {
  int64_t sums = 0, gathers = 0, broadcasts = 0, finished = 0;
};

class CountedCollective : public Collective {
 public:
  explicit CountedCollective(Calls* calls) : calls_(calls) {}
  void finish() override { ++calls_->finished; }

 private:
  Calls* calls_;
};

/// Needs no messages for any collective.
class NativeTransport : public ForwardingTransport {
 public:
  NativeTransport(std::unique_ptr<Transport> inner, Calls* calls)
      : ForwardingTransport(std::move(inner)), calls_(calls) {}

  std::unique_ptr<Collective> start_all_reduce(const AllReduceCall& call, Transport&) override {
    EXPECT_EQ(call.members[call.own], rank());
    ++calls_->sums;
    return std::make_unique<CountedCollective>(calls_);
  }
  std::unique_ptr<Collective> start_all_gather(const AllGatherCall& call, Transport&) override {
    EXPECT_EQ(call.members[call.own], rank());
    ++calls_->gathers;
    return std::make_unique<CountedCollective>(calls_);
  }
  std::unique_ptr<Collective> start_broadcast(const BroadcastCall& call, Transport&) override {
    EXPECT_EQ(call.members[call.own], rank());
    ++calls_->broadcasts;
    return std::make_unique<CountedCollective>(calls_);
  }

 private:
  Calls* calls_;
};

/// All decorators, of which the outermost counts and the innermost would fail at the first message.
std::unique_ptr<Transport> decorated(std::unique_ptr<Transport> inner,
                                     TransportCounters* counters) {
  inner = failing(std::move(inner), 0, Failure::kThrow);
  return recording(delaying(std::move(inner), {}), counters);
}

TEST_F(Native, CollectivesOfATransportPassThroughItsDecorators) {
  auto world = threads::create(3);
  Calls calls;
  NativeTransport native(std::move(world[1]), &calls);
  TransportCounters counters;
  const auto outermost = decorated(std::make_unique<BorrowedTransport>(native), &counters);
  double data[4] = {};
  AllReduce sum(*outermost, {0, 1, 2}, data, 4, SumType::kFloat64);
  AllGather gather(*outermost, {1, 2}, {8, 16}, data);
  EXPECT_EQ(calls.finished, 0);
  sum.finish();
  gather.finish();
  broadcast(*outermost, {0, 1}, 0, data, 8);
  EXPECT_EQ(calls.sums, 1);
  EXPECT_EQ(calls.gathers, 1);
  EXPECT_EQ(calls.broadcasts, 1);
  EXPECT_EQ(calls.finished, 3);
  EXPECT_EQ(counters.messages, 0);
}

TEST_F(Native, WhereThereIsNothingToDoTheTransportIsNotAsked) {
  auto world = threads::create(3);
  Calls calls;
  NativeTransport native(std::move(world[1]), &calls);
  double data = 5;
  AllReduce(native, {1}, &data, 1, SumType::kFloat64).finish();
  AllReduce(native, {0, 1, 2}, nullptr, 0, SumType::kFloat64).finish();
  AllGather(native, {1}, {8}, &data).finish();
  AllGather(native, {0, 1}, {0, 0}, nullptr).finish();
  broadcast(native, {1}, 0, &data, 8);
  broadcast(native, {0, 1}, 0, nullptr, 0);
  EXPECT_EQ(calls.sums + calls.gathers + calls.broadcasts, 0);
  EXPECT_EQ(data, 5);
}

/// Every decorator between the caller and a transport without collectives sees their messages.
TEST_F(Native, DecoratorsSeeTheMessagesOfCollectives) {
  const Members all = {0, 1, 2, 3};
  const auto play = [&](Transport& transport) {
    double data[4] = {1, 1, 1, 1};
    AllReduce(transport, all, data, 4, SumType::kFloat64).finish();
    AllGather(transport, all, {8, 8, 8, 8}, data).finish();
    broadcast(transport, all, 0, data, 32);
    for (double element : data) EXPECT_EQ(element, 4);
  };
  std::vector<TransportCounters> inner(4), outer(4);
  auto world = threads::create(4);
  for (int rank = 0; rank < 4; ++rank) {
    world[rank] = recording(std::move(world[rank]), &inner[rank]);
    world[rank] = delaying(std::move(world[rank]), {std::chrono::microseconds(10), 0});
    world[rank] = recording(std::move(world[rank]), &outer[rank]);
  }
  threads::run_ranks(world, play);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_GT(outer[rank].messages, 0);
    // The delay sends its time beside each.
    EXPECT_EQ(2 * outer[rank].messages, inner[rank].messages);
    EXPECT_EQ(outer[rank].bytes_sent + 8 * outer[rank].messages, inner[rank].bytes_sent);
  }
}

TEST_F(Native, DelayingHoldsEveryRoundBack) {
  using Clock = std::chrono::steady_clock;
  auto world = threads::create(4);
  for (auto& transport : world)
    transport = delaying(std::move(transport), {std::chrono::microseconds(10'000), 0});
  threads::run_ranks(world, [](Transport& transport) {
    std::vector<double> data(100);
    const Clock::time_point begin = Clock::now();
    AllReduce(transport, {0, 1, 2, 3}, data.data(), 100, SumType::kFloat64).finish();
    EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(4 * 10));
  });
}

}  // namespace
}  // namespace tessera::native_test

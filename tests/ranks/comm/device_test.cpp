// Messages in the memory of devices (fake_queue.h) over the threads transport: their contents are
// those of the moment in the queue, and no host waits for a device.

#include "tessera/base/error.h"
#include "tessera/comm/threads/threads.h"
#include "tests/ranks/comm/device_traffic.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::device_test {
namespace {

class DeviceMemory : public WatchedTest {};

TEST_F(DeviceMemory, RandomMessagesArriveInWorldsOfAnySize) {
  for (int size = 1; size <= 8; ++size)
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(testing::Message() << size << " ranks, seed " << seed);
      threads::run_ranks(size, [seed](Transport& transport) {
        DeviceTraffic traffic(transport, seed);
        traffic.play(20);
        EXPECT_EQ(traffic.num_drains(), 2) << "the test's own";
        EXPECT_EQ(traffic.num_blocks(), 0);
      });
    }
}

TEST_F(DeviceMemory, CollectivesHaveTheBitsOfTheHostsOnes) {
  for (const Members& members : std::vector<Members>{
           {3}, {0, 1}, {0, 3, 5}, {1, 2, 4, 6}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7}})
    for (int64_t count : {0, 1, 5, 513, 20'011})
      threads::run_ranks(
          8, [&](Transport& transport) { play_device_collectives(transport, members, count); });
}

/// Both hosts are through with everything before a single kernel has run.
TEST_F(DeviceMemory, NoHostWaitsForADevice) {
  std::list<FakeQueue> queues;
  for (uint64_t rank = 0; rank < 2; ++rank) queues.emplace_back(rank).hold();
  std::vector<FakeQueue*> queue_of = {&queues.front(), &queues.back()};
  double data[2] = {-7, -7}, scratch[2] = {-7, -7}, received[2] = {-7, -7};
  threads::run_ranks(2, [&](Transport& transport) {
    const int rank = transport.rank(), other = 1 - rank;
    FakeQueue& queue = *queue_of[rank];
    queue.then([&data, rank] { data[rank] = rank + 1; });
    AllReduce sum(transport, {0, 1}, &data[rank], 1, SumType::kFloat64, &scratch[rank], &queue);
    sum.finish();
    Batch batch;
    batch.queue = &queue;
    batch.sends.push_back({other, &data[rank], sizeof(double)});
    batch.receives.push_back({other, &received[rank], sizeof(double)});
    transport.finish(transport.start(batch));
    queue.then([&data, rank] { data[rank] = -1; });
  });
  EXPECT_EQ(received[0], -7);
  for (FakeQueue* queue : queue_of) queue->release();
  for (FakeQueue* queue : queue_of) queue->drain();
  EXPECT_EQ(received[0], 3);
  EXPECT_EQ(received[1], 3);
  EXPECT_EQ(data[0], -1);
}

TEST_F(DeviceMemory, ASumOnADeviceNeedsScratch) {
  EXPECT_THROW(
      threads::run_ranks(
          2,
          [](Transport& transport) {
            FakeQueue queue(1);
            double data = 0;
            AllReduce(transport, {0, 1}, &data, 1, SumType::kFloat64, nullptr, &queue).finish();
          }),
      InternalError);
}

/// Whichever side comes second.
TEST_F(DeviceMemory, AMessageIsOnDevicesAtBothEndsOrAtNone) {
  for (int device = 0; device < 2; ++device)
    for (int64_t bytes : {0, 8}) {
      try {
        threads::run_ranks(2, [&](Transport& transport) {
          const int rank = transport.rank();
          FakeQueue queue(1);
          char data[8] = {};
          Batch batch;
          if (rank == device) batch.queue = &queue;
          if (rank == 0) batch.sends.push_back({1, data, bytes});
          if (rank == 1) batch.receives.push_back({0, data, bytes});
          transport.finish(transport.start(batch));
        });
        ADD_FAILURE() << "nothing was thrown";
      } catch (const InternalError& error) {
        const std::string text = error.what();
        const char* says = device == 0 ? "in a device's memory at its sender, rank 0, and in the "
                                         "host's at its receiver, rank 1"
                                       : "in the host's memory at its sender, rank 0, and in a "
                                         "device's at its receiver, rank 1";
        EXPECT_NE(text.find(says), std::string::npos) << text;
      }
    }
}

}  // namespace
}  // namespace tessera::device_test

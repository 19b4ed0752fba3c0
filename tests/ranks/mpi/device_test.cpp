// Messages of devices over MPI ranks: staged in the host's memory.

#include "tessera/base/error.h"
#include "tessera/comm/borrowed.h"
#include "tessera/comm/decorators.h"
#include "tests/ranks/comm/device_traffic.h"
#include "tests/ranks/mpi/world.h"

namespace tessera::mpi_device_test {
namespace {

TEST(MpiDevices, RandomMessagesArrive) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto staged = staging(std::make_unique<BorrowedTransport>(world()));
    DeviceTraffic(*staged, seed).play(30);
  }
}

TEST(MpiDevices, CollectivesHaveTheBitsOfTheHostsOnes) {
  const auto staged = staging(std::make_unique<BorrowedTransport>(world()));
  Members odd;
  for (int rank = 1; rank < world().size(); rank += 2) odd.push_back(rank);
  for (const Members& members : {everyone(), odd})
    for (int64_t count : {0, 1, 513, 100'003}) play_device_collectives(*staged, members, count);
}

TEST(MpiDevices, MemoryOfADeviceHasToBeStaged) {
  FakeQueue queue(1);
  Batch batch;
  batch.queue = &queue;
  EXPECT_THROW(world().start(batch), InternalError);
}

}  // namespace
}  // namespace tessera::mpi_device_test

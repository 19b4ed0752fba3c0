// Messages of devices over MPI ranks, which stage them in the host's memory by themselves.

#include "tests/ranks/comm/device_traffic.h"
#include "tests/ranks/mpi/world.h"

namespace tessera::mpi_device_test {
namespace {

TEST(MpiDevices, RandomMessagesArrive) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    DeviceTraffic(world(), seed).play(30);
  }
}

TEST(MpiDevices, CollectivesHaveTheBitsOfTheHostsOnes) {
  Members odd;
  for (int rank = 1; rank < world().size(); rank += 2) odd.push_back(rank);
  for (const Members& members : {everyone(), odd})
    for (int64_t count : {0, 1, 513, 100'003}) play_device_collectives(world(), members, count);
}

}  // namespace
}  // namespace tessera::mpi_device_test

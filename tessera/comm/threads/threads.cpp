#include "tessera/comm/threads/threads.h"

#include "tessera/comm/threads/rank_transport.h"

namespace tessera::threads {

std::vector<std::unique_ptr<Transport>> create(int size, const Options& options) {
  const auto world = std::make_shared<World>(size, options);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < size; ++rank)
    transports.push_back(std::make_unique<RankTransport>(world, rank));
  return transports;
}

}  // namespace tessera::threads

// The transport in a build that has found no NCCL: it says so, and what to install.

#include "tessera/base/error.h"
#include "tessera/comm/nccl/nccl.h"

namespace tessera::nccl {

bool available() { return false; }

std::unique_ptr<Transport> create(std::unique_ptr<Transport>, int, std::chrono::milliseconds) {
  throw_error<Unsupported>(
      "[nccl] this build has no NCCL; install libnccl-dev beside CUDA and build again, or let "
      "messages go by mpi or threads");
}

}  // namespace tessera::nccl

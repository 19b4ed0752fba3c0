#pragma once
// One process's end of the world of MPI ranks, as its rank's thread sees it.

#include <memory>
#include <thread>
#include <unordered_map>

#include "tessera/comm/mpi/desk.h"
#include "tessera/comm/mpi/mpi.h"
#include "tessera/comm/mpi/process_end.h"
#include "tessera/comm/transport.h"

namespace tessera::mpi {

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(const Options& options);
  /// Leaves, if leave() has not been called; a failure then ends in the launcher's record only.
  ~MpiTransport() override;

  int rank() const override { return desk_->rank(); }
  int size() const override { return desk_->size(); }
  Ticket start(const Batch& batch) override;
  void finish(Ticket ticket) override;
  void abort(const std::string& reason) noexcept override;
  bool failed() const noexcept override { return desk_->has_failed(); }

  /// Collective over all ranks: the orderly end. Throws CommError when the world has failed, and
  /// when a rank has left that still had messages to send or receive.
  void leave();

 private:
  void end() noexcept;
  [[noreturn]] void throw_failure(const Failure& failure);

  WorldLife life_;
  // Shared with the communication thread, which outlives this object if it is stuck inside MPI.
  std::shared_ptr<Desk> desk_;
  std::thread thread_;
  Ticket next_ticket_ = 0;
  std::unordered_map<Ticket, std::unique_ptr<StartedBatch>> started_;
};

}  // namespace tessera::mpi

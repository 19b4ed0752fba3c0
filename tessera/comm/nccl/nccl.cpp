#include "tessera/comm/nccl/nccl.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"
#include "tessera/comm/device_queue.h"
#include "tessera/comm/forwarding.h"
#include "tessera/comm/nccl/communicators.h"
#include "tessera/comm/posted_message.h"
#include "tessera/comm/together.h"

namespace tessera::nccl {
namespace {

cudaStream_t stream_of(DeviceQueue& queue) { return static_cast<cudaStream_t>(queue.native()); }

/// The queue runs on after the moment.
void follow(DeviceQueue& queue, const Event& done) {
  check(cudaStreamWaitEvent(stream_of(queue), done.get(), 0), "waiting for what has arrived");
}

/// Which line a message goes by.
Line line_of(const PostedMessage& message, int rank) {
  const bool sends = message.as == PostedAs::kSend;
  return (sends ? message.peer >= rank : message.peer <= rank) ? Line::kUp : Line::kDown;
}

ncclResult_t call(const std::vector<PostedMessage>& messages, ncclComm_t communicator,
                  cudaStream_t stream) {
  ncclResult_t result = ncclSuccess;
  for (const PostedMessage& message : messages) {
    const auto bytes = static_cast<size_t>(message.bytes);
    if (is_error(result)) break;
    result = message.as == PostedAs::kSend
                 ? ncclSend(message.source, bytes, ncclChar, message.peer, communicator, stream)
                 : ncclRecv(message.target, bytes, ncclChar, message.peer, communicator, stream);
  }
  return result;
}

/// A sum over all ranks; the queue goes on while it runs, until finish().
class Sum final : public Collective {
 public:
  Sum(Transport& transport, Communicators& lines, const AllReduceCall& call)
      : transport_(transport), lines_(lines), queue_(*call.queue) {
    const ncclDataType_t type = call.type == SumType::kFloat32 ? ncclFloat : ncclDouble;
    const auto reduce = [&](ncclComm_t communicator, cudaStream_t stream) {
      return ncclAllReduce(call.data, call.data, static_cast<size_t>(call.count), type, ncclSum,
                           communicator, stream);
    };
    done_ = lines.queue(Line::kSums, record(stream_of(queue_)), reduce,
                        fmt::format("for a sum of {} numbers", call.count));
  }

  ~Sum() override {
    if (done_) transport_.abort("an all-reduce was left unfinished");
  }

  void finish() override {
    const Event done = std::exchange(done_, nullptr);
    try {
      lines_.expect_alive();
      follow(queue_, done);
    } catch (const CommError& error) {
      transport_.abort(error.what());
      throw;
    }
  }

 private:
  Transport& transport_;
  Communicators& lines_;
  DeviceQueue& queue_;
  Event done_;
};

class NcclTransport final : public DeviceCarrier {
  struct Started {
    DeviceQueue* queue;
    std::vector<Event> done;
  };

  /// What fails here fails on all ranks.
  template <class Work>
  auto guarded(const Work& work) {
    try {
      lines_.expect_alive();
      return work();
    } catch (const CommError& error) {
      abort(error.what());
      throw;
    }
  }

 public:
  NcclTransport(std::unique_ptr<Transport> host, int device, std::chrono::milliseconds timeout)
      : DeviceCarrier(std::move(host)), lines_(*inner_, device, timeout) {}

  ~NcclTransport() override {
    if (!started_.empty())
      abort(fmt::format("it ended while {} batches of it were unfinished", started_.size()));
  }

  Ticket start(const Batch& batch) override {
    return guarded([&] { return batch.queue ? start_on_device(batch) : inner_->start(batch); });
  }

  void finish(Ticket ticket) override {
    guarded([&] {
      const auto found = started_.find(ticket);
      if (found == started_.end()) return inner_->finish(ticket);
      for (const Event& done : found->second.done) follow(*found->second.queue, done);
      started_.erase(found);
    });
  }

  std::unique_ptr<Collective> start_all_reduce(const AllReduceCall& call,
                                               Transport& messages) override {
    if (!call.queue || std::ssize(call.members) < size())
      return DeviceCarrier::start_all_reduce(call, messages);
    return guarded([&] { return std::make_unique<Sum>(*this, lines_, call); });
  }

  void abort(const std::string& reason) noexcept override {
    inner_->abort(reason);
    lines_.abort(reason);
    started_.clear();
  }

 private:
  Ticket start_on_device(const Batch& batch) {
    std::vector<PostedMessage> by_line[2];
    int64_t to_oneself = 0;
    for (const PostedMessage& message : posted_messages(batch, *this)) {
      if (message.bytes == 0) continue;
      by_line[static_cast<size_t>(line_of(message, rank()))].push_back(message);
      if (message.peer == rank()) to_oneself += message.as == PostedAs::kSend ? 1 : -1;
    }
    TESSERA_CHECK(to_oneself == 0,
                  "rank {}/{}: NCCL takes a message to oneself only in one batch with its receive",
                  rank(), size());
    Started started{batch.queue, {}};
    const Event ready = record(stream_of(*batch.queue));
    for (const Line line : {Line::kUp, Line::kDown}) {
      const std::vector<PostedMessage>& messages = by_line[static_cast<size_t>(line)];
      if (messages.empty()) continue;
      const auto calls = [&](ncclComm_t communicator, cudaStream_t stream) {
        return call(messages, communicator, stream);
      };
      started.done.push_back(lines_.queue(line, ready, calls, list_messages(messages)));
    }
    started_.emplace(--last_ticket_, std::move(started));
    return last_ticket_;
  }

  Communicators lines_;
  Ticket last_ticket_ = -1;  // those below are ours, the others the host's
  std::unordered_map<Ticket, Started> started_;
};

/// What no other GPU has, on no machine.
struct Identity {
  char uuid[sizeof(cudaUUID_t)] = {};
  auto operator<=>(const Identity&) const = default;
};

Identity identity_of(int device) {
  cudaDeviceProp properties{};
  if (const cudaError_t result = cudaGetDeviceProperties(&properties, device);
      result != cudaSuccess)
    throw_error<InvalidInput>("[nccl] cuda:{}: {}", device, cudaGetErrorString(result));
  Identity identity;
  std::copy_n(properties.uuid.bytes, sizeof(identity.uuid), identity.uuid);
  return identity;
}

/// NCCL itself would wait for ever, or say "invalid usage".
void refuse_shared_devices(Transport& host, int device) {
  const Members all = everyone(host.size());
  std::vector<Identity> identities(all.size());
  do_together(host, [&] { identities[host.rank()] = identity_of(device); });
  AllGather(host, all, std::vector<int64_t>(all.size(), sizeof(Identity)), identities.data())
      .finish();
  for (size_t second = 1; second < identities.size(); ++second)
    for (size_t first = 0; first < second; ++first)
      if (identities[first] == identities[second])
        throw_error<InvalidInput>(
            "[nccl] ranks {} and {} have the same GPU, and NCCL wants one for each rank; use as "
            "many ranks as there are GPUs, or let messages go by mpi or threads",
            first, second);
}

}  // namespace

bool available() { return true; }

std::unique_ptr<Transport> create(std::unique_ptr<Transport> host, int device,
                                  std::chrono::milliseconds timeout) {
  if (timeout.count() < 1)
    throw_error<InvalidInput>("[nccl] timeout of {} ms; use at least 1 ms", timeout.count());
  refuse_shared_devices(*host, device);
  return std::make_unique<NcclTransport>(std::move(host), device, timeout);
}

}  // namespace tessera::nccl

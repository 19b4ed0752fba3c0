#include "tessera/comm/nccl/communicators.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"

namespace tessera::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};

}  // namespace

void check(cudaError_t result, const char* doing) {
  if (result != cudaSuccess)
    throw_error<CommError>("[nccl] {}: {}", doing, cudaGetErrorString(result));
}

Event record(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  Event kept(event, [](cudaEvent_t gone) { cudaEventDestroy(gone); });
  check(cudaEventRecord(event, stream), "recording an event");
  return kept;
}

Communicators::Communicators(Transport& host, int device, std::chrono::milliseconds timeout)
    : host_(host),
      device_(device),
      timeout_(std::min(timeout, kLongestTimeout)),
      exceptions_(std::uncaught_exceptions()) {
  try {
    connect();
    watchdog_ = std::thread([this] { watch(); });
    greet_all();
  } catch (const std::exception& error) {
    abort(error.what());
    leave();
    throw;
  }
}

Communicators::~Communicators() {
  if (std::uncaught_exceptions() > exceptions_) abort("an exception ended the transport");
  for (cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
  try {
    expect_alive();
    barrier(host_, everyone(host_.size()));  // a peer may still fetch what it was sent
  } catch (const std::exception&) {
    // A rank that has failed is not waited for.
  }
  leave();
}

void Communicators::leave() noexcept {
  {
    std::lock_guard lock(mutex_);
    leaving_ = true;
    end("the transport has ended");
  }
  woken_.notify_all();
  if (watchdog_.joinable()) watchdog_.join();
  queued_.clear();
  for (cudaStream_t stream : streams_)
    if (stream) cudaStreamDestroy(stream);
}

// Nothing of NCCL's may wait inside itself for a peer that is gone: calls return at once, and the
// host asks until they are through.
void Communicators::connect() {
  check(cudaSetDevice(device_), "choosing the device");
  std::array<ncclUniqueId, kNumLines> ids{};
  if (host_.rank() == 0)
    for (ncclUniqueId& id : ids) expect_success(ncclGetUniqueId(&id), "naming a communicator");
  broadcast(host_, everyone(host_.size()), 0, ids.data(), sizeof(ids));
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
  for (int line = 0; line < kNumLines; ++line) {
    check(cudaStreamCreateWithPriority(&streams_[line], cudaStreamNonBlocking, greatest),
          "a stream");
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    expect_success(ncclCommInitRankConfig(&communicators_[line], host_.size(), ids[line],
                                          host_.rank(), &config),
                   "a communicator");
    await(communicators_[line], "a communicator");
  }
}

// NCCL connects ranks when they first have to do with each other, and the host would wait for that
// in start().
void Communicators::greet_all() {
  void* bytes = nullptr;
  check(cudaMalloc(&bytes, 2), "two bytes of the device");
  const std::shared_ptr<void> kept(bytes, [](void* gone) { cudaFree(gone); });
  char* const heard = static_cast<char*>(bytes) + 1;
  const auto greet = [&](Line line) {
    return [&, line](ncclComm_t communicator, cudaStream_t stream) {
      ncclResult_t result = ncclSuccess;
      const int rank = host_.rank();
      for (int peer = 0; peer < host_.size() && !is_error(result); ++peer) {
        const bool sends = line == Line::kUp ? peer >= rank : peer < rank;
        const bool hears = line == Line::kUp ? peer <= rank : peer > rank;
        if (sends) result = ncclSend(bytes, 1, ncclChar, peer, communicator, stream);
        if (hears && !is_error(result))
          result = ncclRecv(heard, 1, ncclChar, peer, communicator, stream);
      }
      return result;
    };
  };
  const auto add = [&](ncclComm_t communicator, cudaStream_t stream) {
    return ncclAllReduce(bytes, bytes, 1, ncclChar, ncclSum, communicator, stream);
  };
  for (const Line line : {Line::kUp, Line::kDown})
    queue(line, record(stream_of(line)), greet(line), "for the first messages");
  queue(Line::kSums, record(stream_of(Line::kSums)), add, "for the first sum");
  for (cudaStream_t stream : streams_) check(cudaStreamSynchronize(stream), "the first messages");
  expect_alive();
}

Event Communicators::queue(Line line, const Event& ready, const Calls& calls,
                           const std::string& what) {
  if (host_.failed()) host_.start({});  // throws which rank has failed
  std::lock_guard lock(mutex_);
  throw_failure();
  const ncclComm_t communicator = communicators_[static_cast<size_t>(line)];
  const cudaStream_t stream = stream_of(line);
  check(cudaStreamWaitEvent(stream, ready.get(), 0), "waiting for what is sent");
  expect_success(ncclGroupStart(), "a group");
  const ncclResult_t called = calls(communicator, stream);
  const ncclResult_t ended = ncclGroupEnd();
  expect_success(called, what.c_str());
  expect_success(ended, what.c_str());
  await(communicator, what.c_str());
  queued_.push_back({line, ready, record(stream), Clock::now(), what});
  return queued_.back().done;
}

void Communicators::expect_success(ncclResult_t result, const char* doing) {
  if (!is_error(result)) return;
  throw_error<CommError>("[nccl] rank {}/{}: {}: {}", host_.rank(), host_.size(), doing,
                         ncclGetErrorString(result));
}

void Communicators::await(ncclComm_t communicator, const char* doing) {
  const auto deadline = Clock::now() + timeout_;
  for (;;) {
    ncclResult_t state = ncclSuccess;
    expect_success(ncclCommGetAsyncError(communicator, &state), doing);
    expect_success(state, doing);
    if (state == ncclSuccess) return;
    if (host_.failed()) host_.start({});  // throws which rank has failed
    if (Clock::now() > deadline)
      throw_error<CommError>("[nccl] rank {}/{}: {}: not through after {} ms", host_.rank(),
                             host_.size(), doing, timeout_.count());
    std::this_thread::yield();
  }
}

void Communicators::expect_alive() {
  if (host_.failed()) host_.start({});  // throws which rank has failed
  std::lock_guard lock(mutex_);
  throw_failure();
}

void Communicators::throw_failure() const {
  if (failure_)
    throw_error<CommError>("[comm] rank {}/{}: {}", host_.rank(), host_.size(), *failure_);
}

void Communicators::abort(const std::string& reason) noexcept {
  {
    std::lock_guard lock(mutex_);
    end(reason);
  }
  for (cudaStream_t stream : streams_)
    if (stream) cudaStreamSynchronize(stream);
}

void Communicators::end(const std::string& reason) noexcept {
  if (!failure_) failure_ = reason;
  for (ncclComm_t& communicator : communicators_)
    if (communicator) ncclCommAbort(std::exchange(communicator, nullptr));
}

void Communicators::watch() {
  cudaSetDevice(device_);
  std::unique_lock lock(mutex_);
  while (!leaving_ && !failure_) {
    woken_.wait_for(lock, kLook);
    if (leaving_ || failure_) return;
    if (const auto reason = trouble()) end(*reason);
  }
}

std::optional<std::string> Communicators::trouble() {
  if (host_.failed()) return "another rank has failed";
  for (ncclComm_t communicator : communicators_) {
    ncclResult_t state = ncclSuccess;
    ncclCommGetAsyncError(communicator, &state);
    if (is_error(state)) return fmt::format("NCCL: {}", ncclGetErrorString(state));
  }
  return overdue();
}

/// The first of each line that has not run is the one whose turn it is.
std::optional<std::string> Communicators::overdue() {
  std::array<bool, kNumLines> busy{};
  for (auto next = queued_.begin(); next != queued_.end();) {
    const cudaError_t done = cudaEventQuery(next->done.get());
    if (done == cudaSuccess) {
      next = queued_.erase(next);
      continue;
    }
    if (done != cudaErrorNotReady) return fmt::format("the device: {}", cudaGetErrorString(done));
    bool& line_is_busy = busy[static_cast<size_t>(next->line)];
    if (line_is_busy || cudaEventQuery(next->ready.get()) != cudaSuccess)
      next->since = Clock::now();
    else if (Clock::now() - next->since > timeout_)
      return fmt::format(
          "waited {} ms in vain {}; look at the other ranks first, or raise the "
          "timeout",
          timeout_.count(), next->what);
    line_is_busy = true;
    ++next;
  }
  return std::nullopt;
}

}  // namespace tessera::nccl

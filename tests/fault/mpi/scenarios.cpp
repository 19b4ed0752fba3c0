// What ranks do in the fault tests, by name. Waits have a limit of ten minutes unless the scenario
// is about timeouts: what ends the job must then be something else.

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"
#include "tessera/comm/mpi/mpi.h"
#include "tests/fault/mpi/job.h"

namespace tessera {
namespace {

using Arguments = std::vector<std::string>;
using Scenario = std::function<void(Transport&, const Arguments&)>;

Members everyone(const Transport& transport) {
  Members all;
  for (int rank = 0; rank < transport.size(); ++rank) all.push_back(rank);
  return all;
}

/// Memory that is gone for good when it is freed: a late write is a signal, not a silent error.
class Pages {
 public:
  explicit Pages(int64_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Pages() { munmap(data_, bytes_); }
  char* data() { return static_cast<char*>(data_); }

 private:
  int64_t bytes_;
  void* data_;
};

/// One exchange of `bytes` with every other rank.
void swap_with_all(Transport& transport, int64_t bytes) {
  Pages sent(transport.size() * bytes), received(transport.size() * bytes);
  Batch batch;
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    batch.sends.push_back({peer, sent.data() + peer * bytes, bytes});
    batch.receives.push_back({peer, received.data() + peer * bytes, bytes});
  }
  transport.finish(transport.start(batch));
}

void pass_along_ring(Transport& transport) {
  const int rank = transport.rank(), size = transport.size();
  int64_t sent = rank, received = -1;
  Batch batch;
  batch.sends.push_back({(rank + 1) % size, &sent, sizeof(sent)});
  batch.receives.push_back({(rank + size - 1) % size, &received, sizeof(received)});
  transport.finish(transport.start(batch));
}

[[noreturn]] void exchange_for_ever(Transport& transport) {
  for (int step = 0;; ++step) swap_with_all(transport, step % 3 ? 100 : 1'000'000);
}

/// Sums, gathers and broadcasts of small and large buffers, two of them in flight at a time.
[[noreturn]] void collect_for_ever(Transport& transport) {
  const Members all = everyone(transport);
  for (int step = 0;; ++step) {
    const int64_t bytes = step % 3 ? 64 : 4'000'000;
    Pages summed(bytes), gathered(transport.size() * bytes), sent(bytes);
    AllReduce sum(transport, all, summed.data(), bytes / 8, SumType::kFloat64);
    AllGather gather(transport, all, std::vector<int64_t>(all.size(), bytes), gathered.data());
    sum.finish();
    gather.finish();
    broadcast(transport, all, step % transport.size(), sent.data(), bytes);
  }
}

/// RANK SIGNAL MICROSECONDS: sends the signal to itself somewhere in what follows, if it is this
/// rank.
std::optional<std::thread> signal_later(const Transport& transport, const Arguments& arguments) {
  if (transport.rank() != std::stoi(arguments[0])) return {};
  return std::thread([arguments] {
    std::this_thread::sleep_for(std::chrono::microseconds(std::stoi(arguments[2])));
    raise(std::stoi(arguments[1]));
    kill(getpid(), std::stoi(arguments[1]));
  });
}

/// kill RANK SIGNAL MICROSECONDS: the rank dies somewhere in the traffic.
void kill_in_traffic(Transport& transport, const Arguments& arguments) {
  const auto killer = signal_later(transport, arguments);
  exchange_for_ever(transport);
}

/// kill_in_collective RANK SIGNAL MICROSECONDS
void kill_in_collective(Transport& transport, const Arguments& arguments) {
  const auto killer = signal_later(transport, arguments);
  collect_for_ever(transport);
}

/// Rank 1 throws between start and finish, when the others are in the middle of theirs.
void throw_in_collective(Transport& transport, const Arguments&) {
  Pages summed(4'000'000);
  for (int step = 0;; ++step) {
    AllReduce sum(transport, everyone(transport), summed.data(), 500'000, SumType::kFloat64);
    if (transport.rank() == 1 && step == 3) throw_error<InvalidInput>("[op] thrown between");
    sum.finish();
  }
}

/// mismatch_in_collective COUNT COUNT_OF_RANK_2
void mismatch_in_collective(Transport& transport, const Arguments& arguments) {
  const int64_t count = std::stoi(arguments[transport.rank() == 2 ? 1 : 0]);
  std::vector<double> summed(count, 1.0);
  AllReduce(transport, everyone(transport), summed.data(), count, SumType::kFloat64).finish();
}

/// Rank 3 computes for ever before its part of a sum.
void compute_before_sum(Transport& transport, const Arguments&) {
  double summed = 1;
  for (int step = 0; step < 3; ++step) {
    while (transport.rank() == 3 && step == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
    AllReduce(transport, everyone(transport), &summed, 1, SumType::kFloat64).finish();
  }
}

/// stop RANK: the rank is stopped while it computes, and the others wait along the ring.
void stop_in_ring(Transport& transport, const Arguments& arguments) {
  for (int step = 0;; ++step) {
    if (step == 3 && transport.rank() == std::stoi(arguments[0])) kill(getpid(), SIGSTOP);
    pass_along_ring(transport);
  }
}

/// abort RANK MICROSECONDS: the rank aborts from within the traffic; everyone frees at once.
void abort_in_traffic(Transport& transport, const Arguments& arguments) {
  constexpr int64_t kBytes = 3'000'000;
  if (transport.rank() != std::stoi(arguments[0]))
    for (;;) swap_with_all(transport, kBytes);
  for (int step = 0; step < 3; ++step) swap_with_all(transport, kBytes);
  Pages pages(2 * kBytes);
  Batch batch;
  const int peer = (transport.rank() + 1) % transport.size();
  batch.receives.push_back({peer, pages.data(), kBytes});
  batch.sends.push_back({peer, pages.data() + kBytes, kBytes});
  transport.start(batch);
  std::this_thread::sleep_for(std::chrono::microseconds(std::stoi(arguments[1])));
  transport.abort("had enough");
}

void throw_on_one(Transport& transport, const Arguments&) {
  for (int step = 0; step < 5; ++step) {
    if (transport.rank() == 1 && step == 3) throw_error<InvalidInput>("[data] file 7 is empty");
    barrier(transport, everyone(transport));
  }
}

void throw_on_all(Transport&, const Arguments&) { throw_error<InvalidInput>("[plan] too small"); }

/// mismatch SENT EXPECTED
void mismatch(Transport& transport, const Arguments& arguments) {
  std::vector<char> data(100'000);
  Batch batch;
  if (transport.rank() == 0) batch.sends.push_back({1, data.data(), std::stoi(arguments[0])});
  if (transport.rank() == 1) batch.receives.push_back({0, data.data(), std::stoi(arguments[1])});
  transport.finish(transport.start(batch));
  barrier(transport, everyone(transport));
}

void leave_early(Transport& transport, const Arguments&) {
  barrier(transport, everyone(transport));
  if (transport.rank() == 2) return;
  for (int step = 0; step < 3; ++step) barrier(transport, everyone(transport));
}

/// A message that nobody receives: its send is through, but the end is not a good one.
void send_in_vain(Transport& transport, const Arguments&) {
  int value = 0;
  Batch batch;
  if (transport.rank() == 0) batch.sends.push_back({1, &value, sizeof(value)});
  transport.finish(transport.start(batch));
}

/// Rank 3 computes for ever, without a word.
void compute_for_ever(Transport& transport, const Arguments&) {
  pass_along_ring(transport);
  while (transport.rank() == 3) std::this_thread::sleep_for(std::chrono::seconds(1));
  for (int step = 0; step < 3; ++step) pass_along_ring(transport);
}

void wait_in_a_circle(Transport& transport, const Arguments&) {
  int value = 0;
  Batch batch;
  batch.receives.push_back({(transport.rank() + 2) % 3, &value, sizeof(value)});
  transport.finish(transport.start(batch));
}

std::atomic<bool> told_to_stop{false};

/// signal FOLDER: ends well when a rank has been told to stop, as a training does.
void stop_when_told(Transport& transport, const Arguments& arguments) {
  std::signal(SIGTERM, [](int) { told_to_stop = true; });
  mark_running(arguments[0], transport.rank());
  for (double told = 0; told == 0;) {
    told = told_to_stop;
    AllReduce any(transport, everyone(transport), &told, 1, SumType::kFloat64);
    any.finish();
  }
}

void wait_to_be_killed(Transport& transport, const Arguments& arguments) {
  mark_running(arguments[0], transport.rank());
  exchange_for_ever(transport);
}

/// The program's exit while the world lives: not a good end, whatever the code.
void exit_inside(Transport& transport, const Arguments&) {
  barrier(transport, everyone(transport));
  if (transport.rank() == 1) std::exit(0);
  exchange_for_ever(transport);
}

const std::map<std::string, Scenario> kScenarios = {
    {"kill", kill_in_traffic},
    {"stop", stop_in_ring},
    {"stop_in_traffic", kill_in_traffic},
    {"abort", abort_in_traffic},
    {"kill_in_collective", kill_in_collective},
    {"stop_in_collective", kill_in_collective},
    {"throw_in_collective", throw_in_collective},
    {"mismatch_in_collective", mismatch_in_collective},
    {"compute_before_sum", compute_before_sum},
    {"exit_inside", exit_inside},
    {"throw_on_one", throw_on_one},
    {"throw_on_all", throw_on_all},
    {"mismatch", mismatch},
    {"leave_early", leave_early},
    {"send_in_vain", send_in_vain},
    {"compute", compute_for_ever},
    {"circle", wait_in_a_circle},
    {"signal", stop_when_told},
    {"killed", wait_to_be_killed}};

mpi::Options options_of(const std::string& scenario) {
  mpi::Options options;
  options.timeout = std::chrono::minutes(10);
  options.chunk_bytes = 200'000;
  if (scenario.starts_with("stop")) options.timeout = std::chrono::seconds(2);
  if (scenario.starts_with("compute") || scenario == "circle")
    options.timeout = std::chrono::seconds(1);
  return options;
}

}  // namespace

/// A world that fails in good order, and then another one.
int fail_and_go_on() {
  try {
    mpi::run_rank([](Transport& transport) { throw_in_collective(transport, {}); });
  } catch (const Error&) {
    mpi::run_rank([](Transport& transport) { barrier(transport, everyone(transport)); });
    return 0;
  }
  return 1;
}

int play_as_rank(const std::string& scenario, const std::vector<std::string>& arguments) {
  if (scenario == "exit_before" && std::getenv("OMPI_COMM_WORLD_RANK") == std::string("1"))
    return 2;
  try {
    if (scenario == "fail_and_go_on") return fail_and_go_on();
    int exit_code = 0;
    mpi::run_rank(
        [&](Transport& transport) {
          if (scenario == "exit") exit_code = std::stoi(arguments[0]);
          if (scenario == "exit_apart") exit_code = transport.rank();
          if (scenario == "exit_of_first" && transport.rank() == 0)
            exit_code = std::stoi(arguments[0]);
          const auto found = kScenarios.find(scenario);
          if (found != kScenarios.end()) found->second(transport, arguments);
        },
        options_of(scenario));
    return exit_code;
  } catch (const CommError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 3;
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}

}  // namespace tessera

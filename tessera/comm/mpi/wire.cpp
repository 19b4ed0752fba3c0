#include "tessera/comm/mpi/wire.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/base/error.h"

namespace tessera::mpi {
namespace {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw_error<CommError>("{} failed: {}", call, std::string(text, length));
}

/// MPI starts once in a process and not again after its end, so it runs until the process ends.
void start_mpi() {
  int started = 0, provided = 0;
  check(MPI_Initialized(&started), "MPI_Initialized");
  if (started) return;
  // Not funnelled: the threads that use MPI are not the program's main thread.
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED)
    throw_error<CommError>(
        "this MPI gives thread level {} and {} (MPI_THREAD_SERIALIZED) is needed", provided,
        MPI_THREAD_SERIALIZED);
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

int tag_of(Channel channel) { return 1 + static_cast<int>(channel); }

}  // namespace

struct Wire::Requests {
  struct Entry {
    RequestId id = 0;
    bool is_receive = false;
    Completion completion;
  };

  MPI_Comm comm = MPI_COMM_NULL;  // of our own: nobody else's messages match
  RequestId next_id = 0;
  std::vector<MPI_Request> requests;  // entries[i] belongs to requests[i]
  std::vector<Entry> entries;
  std::vector<int> indices;  // scratch of poll()
  std::vector<MPI_Status> statuses;
};

Wire::Wire() : requests_(std::make_unique<Requests>()) {
  start_mpi();
  check(MPI_Comm_dup(MPI_COMM_WORLD, &requests_->comm), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(requests_->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(requests_->comm, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(requests_->comm, &size_), "MPI_Comm_size");
}

// The communicator is not freed: an answer that nobody waited for any more may be under way in it,
// and must not turn up in the next one. What MPI has not given back stays, because it may still be
// read or written.
Wire::~Wire() {
  if (num_pending() > 0) static_cast<void>(requests_.release());
}

RequestId Wire::add(const void* request, bool is_receive, Completion completion) {
  Requests& all = *requests_;
  all.requests.push_back(*static_cast<const MPI_Request*>(request));
  all.entries.push_back({all.next_id, is_receive, std::move(completion)});
  return all.next_id++;
}

RequestId Wire::send(Channel channel, int to, const void* data, int64_t bytes,
                     Completion completion) {
  MPI_Request request;
  check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag_of(channel), requests_->comm,
                  &request),
        "MPI_Isend");
  return add(&request, false, std::move(completion));
}

RequestId Wire::receive(Channel channel, int from, void* data, int64_t bytes,
                        Completion completion) {
  MPI_Request request;
  const int source = from == kAnyRank ? MPI_ANY_SOURCE : from;
  check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, source, tag_of(channel), requests_->comm,
                  &request),
        "MPI_Irecv");
  return add(&request, true, std::move(completion));
}

int Wire::poll() {
  Requests& all = *requests_;
  const int total = static_cast<int>(all.requests.size());
  all.indices.resize(total);
  all.statuses.resize(total);
  int num_done = 0;
  const int code =
      MPI_Testsome(total, all.requests.data(), &num_done, all.indices.data(), all.statuses.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (int i = 0; i < num_done; ++i) check(all.statuses[i].MPI_ERROR, "MPI_Testsome");
  }
  check(code, "MPI_Testsome");
  if (num_done == MPI_UNDEFINED || num_done == 0) return 0;

  std::vector<std::pair<Completion, Arrival>> done;
  for (int i = 0; i < num_done; ++i) {
    MPI_Status& status = all.statuses[i];
    int count = 0, cancelled = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
    check(MPI_Test_cancelled(&status, &cancelled), "MPI_Test_cancelled");
    done.emplace_back(std::move(all.entries[all.indices[i]].completion),
                      Arrival{status.MPI_SOURCE, count, cancelled != 0});
  }
  // Close the gaps before completions run, which may start new requests.
  std::erase_if(all.entries, [&, i = size_t{0}](const auto&) mutable {
    return all.requests[i++] == MPI_REQUEST_NULL;
  });
  std::erase(all.requests, MPI_REQUEST_NULL);
  for (auto& [completion, arrival] : done) completion(arrival);
  return num_done;
}

void Wire::cancel(RequestId id) {
  Requests& all = *requests_;
  for (size_t i = 0; i < all.entries.size(); ++i)
    if (all.entries[i].id == id) check(MPI_Cancel(&all.requests[i]), "MPI_Cancel");
}

void Wire::cancel_receives() {
  Requests& all = *requests_;
  for (size_t i = 0; i < all.entries.size(); ++i)
    if (all.entries[i].is_receive) check(MPI_Cancel(&all.requests[i]), "MPI_Cancel");
}

int64_t Wire::num_pending() const { return static_cast<int64_t>(requests_->requests.size()); }

// MPI_Finalize polls all the time until the last process has come, which may still have work to do
// after the ranks' last world. So they meet before it, and nap.
void finalise() {
  using std::chrono::microseconds;
  int started = 0, met = 0;
  MPI_Initialized(&started);
  if (!started) return;
  MPI_Request meeting;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &meeting) == MPI_SUCCESS)
    for (microseconds nap{50}; MPI_Test(&meeting, &met, MPI_STATUS_IGNORE) == MPI_SUCCESS && !met;
         nap = std::min(2 * nap, microseconds(20'000)))
      std::this_thread::sleep_for(nap);
  MPI_Finalize();
}

void abort_job(int exit_code) {
  // MPI may hang here too: then the process ends by the alarm.
  std::signal(SIGALRM, SIG_DFL);
  alarm(5);
  int started = 0;
  MPI_Initialized(&started);
  if (started) MPI_Abort(MPI_COMM_WORLD, exit_code);
  _exit(exit_code);
}

}  // namespace tessera::mpi

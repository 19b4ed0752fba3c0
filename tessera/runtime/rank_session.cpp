#include "tessera/runtime/rank_session.h"

#include <numeric>

#include "tessera/comm/borrowed.h"
#include "tessera/comm/threads/threads.h"
#include "tessera/runtime/thread_count.h"

namespace tessera {

RankSession::RankSession(const Lowered& lowered, Transport& transport,
                         const SessionOptions& options)
    : program_(lowered.programs.at(transport.rank())),
      transport_(recording(std::make_unique<BorrowedTransport>(transport), &counters_)),
      everyone_(transport.size()),
      parameters_(lowered.graph, program_.parameters, options.seed, options.real) {
  set_rank_threads(options.threads);
  std::iota(everyone_.begin(), everyone_.end(), 0);
  executor_ = std::make_unique<Executor>(lowered.graph, program_, &parameters_, transport_.get(),
                                         ExecutorOptions{options.real});
}

void run_on_threads(int ranks, int threads_per_rank, double timeout_seconds,
                    const std::function<void(Transport&)>& body) {
  install_caching_allocator();
  set_blas_threads(ranks > 1 ? 1 : threads_per_rank);
  threads::Options options;
  options.timeout = timeout_of(timeout_seconds);
  threads::run_ranks(ranks, body, options);
}

}  // namespace tessera

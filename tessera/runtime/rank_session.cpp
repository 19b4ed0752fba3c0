#include "tessera/runtime/rank_session.h"

#include "tessera/comm/borrowed.h"
#include "tessera/comm/threads/threads.h"
#include "tessera/runtime/claim_resources.h"
#include "tessera/runtime/library_errors.h"
#include "tessera/runtime/thread_count.h"

namespace tessera {

RankSession::RankSession(const Lowering& lowering, Transport& transport,
                         const SessionOptions& options)
    : RankSession(lowering, lowering.program(transport.rank()), transport, options) {}

RankSession::RankSession(const Lowering& lowering, Program program, Transport& transport,
                         const SessionOptions& options)
    : transport_(recording(std::make_unique<BorrowedTransport>(transport), &counters_)),
      device_(open_device(options.device, transport.rank())),
      everyone_(tessera::everyone(transport.size())),
      parameters_(lowering.graph(), program.parameters, options.seed, options.real, *device_),
      executor_(lowering.graph(), std::move(program), &parameters_, transport_.get(),
                ExecutorOptions{options.real}) {
  set_rank_threads(options.threads);
}

void run_on_threads(int ranks, int threads_per_rank, double timeout_seconds,
                    const std::function<void(Transport&)>& body, Bind bind) {
  const std::vector<Cpus> shares = choose_cpus({.ranks = ranks, .threads = threads_per_rank}, bind);
  claim_resources(ranks, threads_per_rank);
  install_caching_allocator();
  set_blas_threads(ranks > 1 ? 1 : threads_per_rank);
  threads::Options options;
  options.timeout = timeout_of(timeout_seconds);
  threads::run_ranks(
      ranks,
      [&](Transport& transport) {
        const BoundThread bound(share_of(shares, transport.rank()));
        set_rank_threads(threads_per_rank);
        with_our_errors("", [&] { body(transport); });
      },
      options);
}

}  // namespace tessera

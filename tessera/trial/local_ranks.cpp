#include "tessera/trial/local_ranks.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <omp.h>

#include "tessera/comm/threads/threads.h"

namespace tessera {

void set_blas_threads(int threads) {
  using SetThreads = void (*)(int);
  static const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set) set(threads);
}

namespace {

/// Both settings are per thread. LibTorch may carry an OpenMP runtime of its own, which does not hear
/// what ours is told.
void set_rank_threads(int threads) {
  at::set_num_threads(threads);
  omp_set_num_threads(threads);
}

}  // namespace

void run_local(const Lowered& lowered, const LocalOptions& options,
               const std::function<void(LocalRank&)>& body) {
  install_caching_allocator();
  const int num_ranks = static_cast<int>(lowered.programs.size());
  set_blas_threads(num_ranks > 1 ? 1 : options.threads);
  std::vector<TransportCounters> counters(num_ranks);
  std::vector<std::unique_ptr<Transport>> world;
  for (auto& transport : threads::create(num_ranks, {options.timeout}))
    world.push_back(recording(std::move(transport), &counters[world.size()]));
  threads::run_ranks(world, [&](Transport& transport) {
    const int rank = transport.rank();
    set_rank_threads(options.threads);
    ParameterStore parameters(lowered.graph, options.seed, options.real);
    Executor executor(lowered.graph, lowered.programs[rank], &parameters, &transport,
                      {options.real});
    LocalRank self{rank, &transport, &counters[rank], &parameters, &executor};
    body(self);
  });
}

}  // namespace tessera

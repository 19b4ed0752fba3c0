// The engine's proof over MPI: over 150 random networks and models of the zoo, on grids and on
// stages. Started by CTest as it is, this program launches itself under mpirun with 2, 3, 4 and 6
// ranks; started as a rank, it verifies every case whose placement has as many ranks as the world.

#include <cstdio>

#include "tessera/base/error.h"
#include "tessera/comm/mpi/mpi.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tessera/planner/balance.h"
#include "tessera/planner/domains.h"
#include "tessera/proof/verify.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/thread_count.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/engine/random_chains.h"
#include "tests/ranks/engine/random_domains.h"
#include "tests/ranks/engine/random_stages.h"

namespace tessera {
namespace {

constexpr int kSkipped = 77;      // CTest counts it as a skip
constexpr int kRandomCases = 24;  // per number of ranks
constexpr int kRandomStages = 8;
constexpr int kRandomChains = 25;
constexpr int kRandomDomains = 8;

struct Tally {
  int passed = 0;
  int failed = 0;
};

void check(const std::string& name, const Graph& graph, const Plan& plan, uint64_t seed,
           Transport& transport, Tally* tally) {
  VerifyOptions options;
  options.plan = plan;
  options.seed = seed;
  const Lowering lowering(graph, plan, verified_step(options));
  const VerifyReport report = verify(graph, lowering, options, transport);
  if (transport.rank() != 0) return;
  ++(report.ok ? tally->passed : tally->failed);
  if (!report.ok)
    std::printf("FAILED %s on %s: %s\n", name.c_str(), to_string(plan).c_str(),
                report.worst.c_str());
}

void check_random_networks(RandomCase (*make)(uint64_t), int cases, Transport& transport,
                           Tally* tally) {
  int checked = 0;
  for (uint64_t seed = 1; checked < cases && seed < 2000; ++seed) {
    const RandomCase random = make(seed);
    if (random.plan.num_ranks() != transport.size()) continue;
    check(fmt::format("seed {}", seed), random.graph, random.plan, seed, transport, tally);
    ++checked;
  }
}

void check_zoo(Transport& transport, Tally* tally) {
  const auto size = static_cast<int64_t>(transport.size());
  const auto model = [&](const char* name, const Shape& input, const std::vector<Plan>& plans) {
    for (const Plan& plan : plans)
      if (plan.num_ranks() == size)
        check(name, build_model(name, input), plan, 1, transport, tally);
  };
  model("cnn1d:base=3,depth=3", {2, 2, 101},
        {{1, {2}, {}}, {1, {3}, {}}, {2, {2}, {}}, {2, {3}, {}}});
  model("unet2d:base=2,depth=4,classes=3", {2, 3, 43, 38},
        {{1, {1, 3}, {}}, {1, {2, 2}, {}}, {1, {3, 2}, {}}, {2, {2, 1}, {2, 2}}, {2, {1, 1}, {}}});
  model("fcn2d:width=0.02,classes=3", {1, 3, 67, 70},
        {{1, {2, 1}, {}}, {1, {2, 2}, {}}, {1, {3, 2}, {}}});
  model("unet3d:base=2,depth=3", {2, 1, 13, 12, 15}, {{1, {1, 2, 2}, {}}, {1, {1, 2, 3}, {}}});
}

/// A U-Net on stages of one rank, with every schedule; on six ranks, stages with a grid and stages
/// with replicas.
void check_stages(Transport& transport, Tally* tally) {
  using enum ScheduleKind;
  const int ranks = transport.size();
  for (ScheduleKind schedule : {kOneForwardOneBackward, kGems, kZeroBubble, kInterleaved}) {
    Plan plan;
    plan.stages.resize(ranks == 6 ? 3 : ranks);
    if (ranks == 6 && schedule == kGems) plan.stages.assign(3, {2, 1});
    if (ranks == 6 && schedule != kGems) plan.data = 2;
    plan.schedule = schedule;
    plan.micro_batches = schedule == kInterleaved ? plan.num_stages() : 3;
    const char* model = "unet2d:base=2,depth=3,classes=3";
    const Graph graph = with_micro_batch_norm(
        build_model(model, {2 * plan.micro_batches, 3, 27, 22}), plan.micro_batches);
    plan.stage_of = balance(graph, plan, {.by = BalanceBy::kTime});
    check(model, graph, plan, 1, transport, tally);
  }
}

/// The digits of two domains: a rank or two a domain; on six ranks also three domains of a grid,
/// and replicas. On three ranks, three domains.
void check_domains(Transport& transport, Tally* tally) {
  const auto on_groups = [&](int targets, int per_domain, std::vector<int64_t> grid, int64_t data) {
    const std::string model = fmt::format("dsn:base=2,code=6,classes=3,targets={}", targets);
    const Graph graph = build_model(model, {3, 3, 16, 14});
    const DomainGroups groups = group_by_domains(graph, per_domain);
    Plan plan;
    plan.stages.assign(groups.count(), grid);
    plan.data = data;
    if (plan.num_ranks() != transport.size()) return;
    plan.stage_of = stages_by_domains(graph, plan, groups);
    check(model, graph, plan, 1, transport, tally);
  };
  on_groups(1, 1, {}, 1);
  on_groups(2, 1, {}, 1);
  on_groups(1, 2, {}, 1);
  on_groups(1, 1, {2, 1}, 1);
  on_groups(1, 1, {}, 2);
  on_groups(2, 1, {1, 2}, 1);
  on_groups(2, 2, {}, 1);
  on_groups(2, 1, {}, 2);
}

int run_as_rank() {
  Tally tally;
  install_caching_allocator();
  set_blas_threads(1);
  mpi::run_rank([&](Transport& transport) {
    set_rank_threads(1);
    check_random_networks(random_case, kRandomCases, transport, &tally);
    check_random_networks(random_stages_case, kRandomStages, transport, &tally);
    check_random_networks(random_chain_case, kRandomChains, transport, &tally);
    check_random_networks(random_domains_case, kRandomDomains, transport, &tally);
    check_zoo(transport, &tally);
    check_stages(transport, &tally);
    check_domains(transport, &tally);
    if (transport.rank() == 0)
      std::printf("%d ranks: %d passed, %d failed\n", transport.size(), tally.passed, tally.failed);
  });
  return tally.failed == 0 ? 0 : 1;
}

int launch_all(const char* program) {
  for (int ranks : {2, 3, 4, 6})
    if (const int code = mpi::launch(ranks, {program}); code != 0) return code;
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int, char** argv) {
  if (!tessera::mpi::available()) return tessera::kSkipped;
  try {
    return tessera::mpi::launched() ? tessera::run_as_rank() : tessera::launch_all(argv[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}

#include "tessera/lower/workload.h"

#include <algorithm>

#include "tessera/base/counts.h"
#include "tessera/base/error.h"
#include "tessera/base/free_memory.h"
#include "tessera/base/quantity.h"
#include "tessera/lower/lower.h"

namespace tessera {
namespace {

// Measured with unet2d on one core: 4 us and 0.25 KB for a placed piece, 70 us and 11 KB for one
// that a program is written for.
constexpr int64_t kMostPlaced = int64_t{1} << 23;
constexpr int64_t kMostLowered = int64_t{1} << 19;
constexpr int64_t kBytesOfPlaced = 256;
constexpr int64_t kBytesOfLowered = 12288;

int64_t over_stages(int64_t count, int64_t stages) { return (count + stages - 1) / stages; }

}  // namespace

Workload workload(const Graph& graph, const Plan& plan) {
  const int64_t ranks = plan.num_ranks(), stages = plan.num_stages();
  const int64_t pieces = product_of({product_of(plan.pieces), plan.micro_batches});
  const int64_t nodes = std::ssize(graph.nodes()), values = std::ssize(graph.values());
  const int64_t together = ranks <= kMostRanksProved ? ranks : 1;
  return {product_of({values, over_stages(ranks, stages), pieces}),
          product_of({over_stages(nodes, stages), pieces}),
          product_of({over_stages(nodes * together, stages), pieces})};
}

void check_workload(const Graph& graph, const Plan& plan) {
  const Workload work = workload(graph, plan);
  if (work.placed > kMostPlaced)
    throw_error<InvalidInput>(
        "[plan] {} values on {} workers with {} pieces and {} micro-batches are {} pieces to "
        "place; at most {} can be planned; use fewer pieces, micro-batches or workers",
        graph.values().size(), plan.num_ranks(), product_of(plan.pieces), plan.micro_batches,
        work.placed, kMostPlaced);
  if (work.lowered > kMostLowered)
    throw_error<InvalidInput>(
        "[plan] {} operators on {} workers with {} pieces and {} micro-batches are {} pieces to "
        "write programs for; at most {} can be planned; use fewer pieces or micro-batches",
        graph.nodes().size(), plan.num_ranks(), product_of(plan.pieces), plan.micro_batches,
        work.lowered, kMostLowered);
  const int64_t needed = work.placed * kBytesOfPlaced + work.lowered * kBytesOfLowered;
  if (needed > free_memory())
    throw_error<OutOfMemory>(
        "[plan] the programs of {} workers with {} pieces and {} micro-batches need about {}, this "
        "machine, or a limit on this process, leaves {} free; use fewer pieces or micro-batches",
        plan.num_ranks(), product_of(plan.pieces), plan.micro_batches, format_bytes(needed),
        format_bytes(free_memory()));
}

void check_kinds(const Workload& work, int64_t num_kinds) {
  if (product_of({work.of_program, num_kinds}) > kMostLowered)
    throw_error<InvalidInput>(
        "[plan] the workers are of {} kinds, with {} pieces to write a program for each; at most "
        "{} in all can be planned; use a grid that divides the image evenly, another schedule than "
        "gems, or fewer workers",
        num_kinds, work.of_program, kMostLowered);
}

void check_choice(const Graph& graph, const Plan& plan, int64_t parts, int64_t num_grids) {
  const int64_t pieces = product_of({product_of(plan.pieces), plan.micro_batches, plan.data});
  const int64_t placed = product_of({std::ssize(graph.values()), parts, pieces, num_grids});
  if (placed > 2 * kMostPlaced)
    throw_error<InvalidInput>(
        "[--workers] there are {} grids of {} workers to choose from, with {} pieces to place in "
        "all; at most {} can be tried; say which with --space",
        num_grids, parts, placed, 2 * kMostPlaced);
}

}  // namespace tessera

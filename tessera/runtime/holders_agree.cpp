#include "tessera/runtime/holders_agree.h"

#include <numeric>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"
#include "tessera/graph/checksum.h"

namespace tessera {
namespace {

/// Nobody for derived weights, which each holder computes when it needs them: a rank that only
/// trains has those of the last step, one that validates has newer ones.
std::vector<Members> holders_of_state(const Lowering& lowering) {
  std::vector<Members> holders = lowering.holders();
  const std::vector<Parameter>& parameters = lowering.graph().parameters();
  for (size_t id = 0; id < holders.size(); ++id)
    if (parameters[id].role == ParameterRole::kDerived) holders[id].clear();
  return holders;
}

}  // namespace

void check_holders_agree(Transport& transport, const Lowering& lowering,
                         const std::vector<at::Tensor>& own, int64_t step) {
  const std::vector<Members> holders = holders_of_state(lowering);
  std::vector<int64_t> first_sum(transport.size() + 1, 0);  // of each rank, and the end
  for (const Members& ranks : holders)
    for (int rank : ranks) ++first_sum[rank + 1];
  std::partial_sum(first_sum.begin(), first_sum.end(), first_sum.begin());
  std::vector<uint64_t> sums(first_sum.back(), 0);  // rank by rank, by ascending parameters
  std::vector<int64_t> next(first_sum.begin(), first_sum.end() - 1);
  for (size_t id = 0; id < holders.size(); ++id)
    if (holds(holders[id], transport.rank())) sums[next[transport.rank()]++] = checksum(own[id]);
  std::vector<int64_t> block_bytes;
  for (int rank = 0; rank < transport.size(); ++rank)
    block_bytes.push_back((first_sum[rank + 1] - first_sum[rank]) *
                          static_cast<int64_t>(sizeof(uint64_t)));
  AllGather gather(transport, everyone(transport.size()), block_bytes, sums.data());
  gather.finish();
  next.assign(first_sum.begin(), first_sum.end() - 1);
  for (size_t id = 0; id < holders.size(); ++id) {
    if (holders[id].empty()) continue;
    const uint64_t expected = sums[next[holders[id].front()]];
    for (int rank : holders[id])
      TESSERA_CHECK(sums[next[rank]++] == expected, "step {}: {} of rank {} differs from rank {}'s",
                    step, lowering.graph().parameters()[id].name, rank, holders[id].front());
  }
}

}  // namespace tessera

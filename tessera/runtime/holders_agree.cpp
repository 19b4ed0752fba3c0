#include "tessera/runtime/holders_agree.h"

#include <numeric>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"
#include "tessera/graph/checksum.h"

namespace tessera {

void check_holders_agree(Transport& transport, const Lowered& lowered,
                         const std::vector<at::Tensor>& own, int64_t step) {
  std::vector<uint64_t> sums;  // of every rank's parameters, rank by rank
  std::vector<int64_t> block_bytes;
  for (const Program& program : lowered.programs) {
    for (ParameterId id : program.parameters)
      sums.push_back(program.rank == transport.rank() ? checksum(own[id]) : 0);
    block_bytes.push_back(static_cast<int64_t>(program.parameters.size() * sizeof(uint64_t)));
  }
  Members everyone(transport.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  AllGather gather(transport, everyone, block_bytes, sums.data());
  gather.finish();
  std::vector<uint64_t> expected(lowered.graph.parameters().size());
  auto sum = sums.begin();
  for (const Program& program : lowered.programs)
    for (ParameterId id : program.parameters) {
      const int first = lowered.holders[id].front();
      if (program.rank == first) expected[id] = *sum;
      TESSERA_CHECK(*sum++ == expected[id], "step {}: {} of rank {} differs from rank {}'s", step,
                    lowered.graph.parameters()[id].name, program.rank, first);
    }
}

}  // namespace tessera

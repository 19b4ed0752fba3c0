#include "tessera/runtime/messages_agree.h"

#include <numeric>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"
#include "tessera/lower/message_balance.h"

namespace tessera {

void check_messages_agree(Transport& transport, const Program& program) {
  std::vector<uint64_t> balances(transport.size(), 0);
  balances[transport.rank()] = message_balance(program);
  AllGather gather(transport, everyone(transport.size()),
                   std::vector<int64_t>(balances.size(), sizeof(uint64_t)), balances.data());
  gather.finish();
  const uint64_t sum = std::accumulate(balances.begin(), balances.end(), uint64_t{0});
  TESSERA_CHECK(sum == 0,
                "the programs of {} ranks do not fit together: some rank sends what its peer does "
                "not wait for",
                transport.size());
}

}  // namespace tessera

// What rank 0 collects.

#include "tessera/train/collect.h"

#include <gtest/gtest.h>

#include "tessera/runtime/rank_session.h"

namespace tessera::collect_test {
namespace {

/// Parameter i is all i + 1, and these ranks hold it.
const std::vector<Members> kHolders{{1, 2}, {0, 1, 2}, {2}, {0}, {1}};

at::Tensor tensor(size_t id) {
  return at::full({static_cast<int64_t>(id), 3}, static_cast<double>(id) + 1, at::kDouble);
}

std::vector<at::Tensor> held_by(int rank) {
  std::vector<at::Tensor> own(kHolders.size());
  for (size_t id = 0; id < own.size(); ++id)
    if (std::find(kHolders[id].begin(), kHolders[id].end(), rank) != kHolders[id].end())
      own[id] = tensor(id);
  return own;
}

TEST(Collect, GivesRankZeroWholeTensors) {
  run_on_threads(3, 1, 30, [&](Transport& transport) {
    const std::vector<at::Tensor> own = held_by(transport.rank());
    std::vector<HeldTensor> tensors;
    for (size_t id = 0; id < own.size(); ++id)
      tensors.push_back({kHolders[id], {static_cast<int64_t>(id), 3}, at::kDouble, own[id]});
    // A sender's tensor need not be dense.
    if (own[2].defined()) tensors[2].own = at::full({3, 2}, 3.0, at::kDouble).t();
    const std::vector<at::Tensor> whole = collect_on_first(transport, tensors);
    ASSERT_EQ(whole.size(), transport.rank() == 0 ? kHolders.size() : 0u);
    for (size_t id = 0; id < whole.size(); ++id) EXPECT_TRUE(whole[id].equal(tensor(id))) << id;
  });
}

}  // namespace
}  // namespace tessera::collect_test

#include "tests/unit/ops/row_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace tessera {
namespace {

/// NaN equals NaN, and zeros have signs.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return at::equal(a.view(at::kLong), b.view(at::kLong));
}

/// The rows with up to two rows of zeros among them.
Rows with_zeros(Draw& draw, const Rows& rows) {
  Rows more = rows;
  for (int64_t zeros = draw.between(0, 2); zeros > 0; --zeros)
    more.insert(more.begin() + draw.between(0, static_cast<int64_t>(more.size())),
                at::zeros_like(rows[0]));
  return more;
}

at::Tensor combined(const Rows& rows, const Combine& combine) {
  Rows before;
  for (const at::Tensor& row : rows) before.push_back(row.clone());
  const at::Tensor result =
      at::full(rows[0].sizes(), std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  combine(rows, result);
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_TRUE(same_bits(rows[i], before[i])) << "row " << i << " was changed";
  return result;
}

}  // namespace

at::Tensor combine_in_a_tree(Draw& draw, Rows rows, const Combine& combine) {
  rows = with_zeros(draw, rows);
  do {
    const auto num_rows = static_cast<int64_t>(rows.size());
    const int64_t arity = std::min(num_rows, draw.between(2, 5));
    const auto first = rows.begin() + draw.between(0, num_rows - arity);
    const Rows group(first, first + arity);
    const at::Tensor result = combined(group, combine);
    EXPECT_TRUE(same_bits(combined(with_zeros(draw, group), combine), result))
        << "rows of zeros are not nothing";
    *first = result;
    rows.erase(first + 1, first + arity);
  } while (rows.size() > 1);
  return rows[0];
}

}  // namespace tessera

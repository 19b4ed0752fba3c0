#pragma once
// A plan says how the work is cut: into `data` parts along the batch, into a grid of `space` parts
// along the spatial axes, and each rank's part into `pieces`. The ranks are the product of the rank
// axes, data first, then space in row-major order. A plan can be given by hand and is a JSON file.
//
// Example: data 2, space 2x2 is 8 ranks; rank 5 is replica 1, row 0, column 1.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/value_type.h"

namespace tessera {

struct Plan {
  int64_t data = 1;
  std::vector<int64_t> space;   // parts per spatial axis; empty: not cut
  std::vector<int64_t> pieces;  // pieces of a rank's part per spatial axis; empty: one

  int num_ranks() const;
  int64_t space_parts(int axis) const;
  int64_t pieces_along(int axis) const;
  bool operator==(const Plan&) const = default;
};

/// Throws InvalidInput, naming the values and the remedy, where the plan does not fit the input: a
/// wrong number of axes, a part that is not positive, more parts than samples or pixels.
void check_plan(const Plan& plan, const ValueType& input);

/// "data 2, space 2x2, pieces 1x2".
std::string to_string(const Plan& plan);

std::string to_json(const Plan& plan);
/// Throws InvalidInput where the text is no plan.
Plan plan_from_json(const std::string& text);

}  // namespace tessera

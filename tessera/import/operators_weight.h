#pragma once
// What the operators on weights alone share.

#include <optional>
#include <string>

#include "tessera/import/call.h"
#include "tessera/import/weight_expression.h"

namespace tessera {

/// None where it is not a weight, or computed from some, or a constant tensor.
std::optional<ExpressionPointer> weight_operand(Call& call, const Symbol& symbol);

/// What an operator that only looks at a weight in another way gives; none where it does more.
std::optional<Symbols> view_of_weight(Call& call, const std::string& op);

}  // namespace tessera

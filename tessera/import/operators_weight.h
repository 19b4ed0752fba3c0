#pragma once
// What the operators on weights alone share.

#include <optional>
#include <string>

#include "tessera/import/call.h"
#include "tessera/import/weight_expression.h"

namespace tessera {

/// None where it is not a weight, or computed from some, or a constant tensor.
std::optional<ExpressionPointer> weight_operand(Call& call, const Symbol& symbol);

/// Refuses what is none of these.
ExpressionPointer needed_operand(Call& call, const std::string& name);

/// torch.cat of weights alone; none where a tensor of the network is among them.
std::optional<Symbols> joined_weights(Call& call);

/// What an operator that picks or repeats elements of a weight gives; none where it is another.
std::optional<ExpressionPointer> gathered_weight(Call& call, const std::string& op);

/// What an operator that only looks at a weight in another way gives; none where it does more.
std::optional<Symbols> view_of_weight(Call& call, const std::string& op);

}  // namespace tessera

#pragma once
// What forward() computes from weights alone, on its way to a derived weight (derivation.h).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/plain_data.h"
#include "tessera/graph/derivation.h"
#include "tessera/import/symbol.h"

namespace tessera {

/// The numbers of a step are part of the recording, which takes no longer lists.
inline constexpr int64_t kMostStepNumbers = PlainReader::kMostItems;

struct WeightExpression;
using ExpressionPointer = std::shared_ptr<const WeightExpression>;

struct WeightExpression {
  std::optional<WeightSymbol> weight;  // of the module, as it is stored; else:
  WeightFunction function = WeightFunction::kDetach;
  std::vector<ExpressionPointer> operands;
  std::vector<int64_t> numbers;
  std::vector<double> factors;
  std::optional<WeightSymbol> updated;  // kUpdate: the buffer
  at::Tensor value;                     // what it is at first; shapes follow from it
};

/// The weight in the shape in which the code looks at it.
ExpressionPointer expression_of(const WeightSymbol& weight);

/// Throws InvalidInput where the operands do not fit.
ExpressionPointer computed(WeightFunction function, std::vector<ExpressionPointer> operands,
                           std::vector<int64_t> numbers = {}, std::vector<double> factors = {});

/// An expression as steps; `sources` are its weights, each once, in the order of Derivation's.
struct FlatExpression {
  std::vector<WeightSymbol> sources;
  std::vector<bool> is_updated;  // per source
  std::vector<WeightStep> steps;
};
FlatExpression flatten(const ExpressionPointer& expression);

}  // namespace tessera

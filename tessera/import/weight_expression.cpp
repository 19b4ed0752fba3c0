#include "tessera/import/weight_expression.h"

#include <algorithm>
#include <map>

namespace tessera {
namespace {

void visit_once(const ExpressionPointer& expression, std::vector<const WeightExpression*>* order) {
  if (std::count(order->begin(), order->end(), expression.get()) > 0) return;
  for (const ExpressionPointer& operand : expression->operands) visit_once(operand, order);
  order->push_back(expression.get());
}

size_t source_index(const WeightSymbol& weight, FlatExpression* flat) {
  for (size_t i = 0; i < flat->sources.size(); ++i)
    if (flat->sources[i].name == weight.name) return i;
  flat->sources.push_back(weight);
  flat->is_updated.push_back(false);
  return flat->sources.size() - 1;
}

}  // namespace

ExpressionPointer expression_of(const WeightSymbol& weight) {
  auto leaf = std::make_shared<WeightExpression>();
  leaf->weight = weight;
  leaf->value = weight.tensor.detach().to(at::kDouble);
  if (weight.view == weight.tensor.sizes().vec()) return leaf;
  return computed(WeightFunction::kReshape, {leaf}, weight.view);
}

ExpressionPointer computed(WeightFunction function, std::vector<ExpressionPointer> operands,
                           std::vector<int64_t> numbers, std::vector<double> factors) {
  auto result = std::make_shared<WeightExpression>();
  std::vector<at::Tensor> values;
  for (const ExpressionPointer& operand : operands) values.push_back(operand->value);
  result->function = function;
  result->operands = std::move(operands);
  result->numbers = std::move(numbers);
  result->factors = std::move(factors);
  result->value = apply_step({function, {}, result->numbers, result->factors}, values);
  return result;
}

FlatExpression flatten(const ExpressionPointer& expression) {
  FlatExpression flat;
  std::vector<const WeightExpression*> order;
  visit_once(expression, &order);
  for (const WeightExpression* each : order) {
    if (each->weight) source_index(*each->weight, &flat);
    if (each->updated) flat.is_updated[source_index(*each->updated, &flat)] = true;
  }
  std::map<const WeightExpression*, int> place;
  for (const WeightExpression* each : order) {
    if (each->weight) {
      place[each] = static_cast<int>(source_index(*each->weight, &flat));
      continue;
    }
    WeightStep step{each->function, {}, each->numbers, each->factors};
    if (each->updated) step.numbers = {static_cast<int64_t>(source_index(*each->updated, &flat))};
    for (const ExpressionPointer& operand : each->operands)
      step.operands.push_back(place.at(operand.get()));
    place[each] = static_cast<int>(flat.sources.size() + flat.steps.size());
    flat.steps.push_back(step);
  }
  return flat;
}

}  // namespace tessera

#include "tessera/import/weight_memory.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

/// Each write into a part lists all elements of the whole, and the lists are part of the recording.
constexpr int64_t kMostListed = 1 << 24;

ExpressionPointer seen_by(ExpressionPointer x, const std::vector<WeightStep>& steps) {
  for (const WeightStep& step : steps) x = computed(step.function, {x}, step.numbers);
  return x;
}

/// `whole` with other elements where a view of it lies.
ExpressionPointer with_part(const ExpressionPointer& whole, const std::vector<WeightStep>& seen,
                            const ExpressionPointer& part) {
  const int64_t count = whole->value.numel();
  if (count >= kMostStepNumbers)
    throw_error<InvalidInput>(
        "writes into a part of a weight of {} elements; Tessera takes up to {}", count,
        kMostStepNumbers - 1);
  at::Tensor places = at::arange(count, at::kLong).reshape(whole->value.sizes());
  for (const WeightStep& step : seen) places = apply_step(step, {places});
  places = places.reshape({-1}).contiguous();
  std::vector<int64_t> numbers{0};  // the axis, and for each element where it comes from
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  for (int64_t i = 0; i < places.numel(); ++i)
    numbers[1 + places.data_ptr<int64_t>()[i]] = count + i;
  const auto flat = [](const ExpressionPointer& x) {
    return computed(WeightFunction::kReshape, {x}, {-1});
  };
  const ExpressionPointer both = computed(WeightFunction::kConcat, {flat(whole), flat(part)}, {0});
  return computed(WeightFunction::kReshape, {computed(WeightFunction::kTake, {both}, numbers)},
                  whole->value.sizes().vec());
}

}  // namespace

ComputedPointer computed_weight(ExpressionPointer expression) {
  auto symbol = std::make_shared<ComputedSymbol>();
  symbol->expression = std::move(expression);
  return symbol;
}

ComputedPointer weight_view(const ComputedPointer& x, const std::vector<WeightStep>& steps) {
  const ComputedPointer view = computed_weight(seen_by(x->expression, steps));
  view->of_module = x->of_module;
  view->may_be_copy = x->may_be_copy;
  view->base = x->base ? x->base : x;
  view->seen = x->seen;
  view->seen.insert(view->seen.end(), steps.begin(), steps.end());
  view->base->views.push_back(view);
  return view;
}

std::string why_not_writable(const ComputedSymbol& x) {
  if (x.of_module) return "it is a weight of the module, or a view of one; change a .clone() of it";
  const ComputedSymbol& base = x.base ? *x.base : x;
  bool may_be_copy = x.may_be_copy;
  for (const auto& view : base.views)
    if (const ComputedPointer other = view.lock()) may_be_copy = may_be_copy || other->may_be_copy;
  return may_be_copy ? "reshape(), contiguous() or another operator that may copy has read it; use "
                       "the form without the trailing underscore"
                     : "";
}

void write_weight(const ComputedPointer& x, ExpressionPointer value) {
  if (value->value.sizes() != x->expression->value.sizes())
    value = computed(WeightFunction::kExpand, {value}, x->expression->value.sizes().vec());
  const ComputedPointer base = x->base ? x->base : x;
  if (x->base) {
    const int64_t count = base->expression->value.numel();
    base->num_written += count;
    if (base->num_written > kMostListed)
      throw_error<InvalidInput>(
          "writes {} into parts of a weight of {} elements; Tessera takes up to {} elements times "
          "writes; compute the parts and join them by torch.cat",
          counted(base->num_written / count, "time"), count, kMostListed);
    base->expression = with_part(base->expression, x->seen, value);
  } else {
    base->expression = value;
  }
  for (const auto& view : base->views)
    if (const ComputedPointer other = view.lock())
      other->expression = seen_by(base->expression, other->seen);
}

}  // namespace tessera

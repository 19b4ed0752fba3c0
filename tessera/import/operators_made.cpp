// Tensors that the code makes itself: of one number, for sums, products and concatenation; and
// random ones, which are dropout by another name (stochastic depth, drop path).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/import/known_operators.h"
#include "tessera/import/operators.h"
#include "tessera/ops/pointwise/broadcast.h"

namespace tessera {
namespace {

using MadePointer = std::shared_ptr<MadeSymbol>;
using Holds = MadeSymbol::Holds;

Symbols make(Call& call, Holds holds, double number) {
  auto made = std::make_shared<MadeSymbol>();
  made->maker = call.op();
  made->holds = holds;
  made->number = number;
  const bool is_like = call.op().ends_with("_like");
  if (const MadePointer* other = is_like ? call.find<MadePointer>("self") : nullptr)
    made->shape = (*other)->shape;
  else
    made->shape =
        is_like ? call.tensor_or_expanded("self")->view.shape() : Shape(call.integers("size"));
  // Real numbers have all digits, and are rounded to the run's type later.
  if (call.has("dtype") && std::holds_alternative<c10::IValue>(call["dtype"]))
    made->type = static_cast<at::ScalarType>(call.integer("dtype"));
  if (at::isFloatingType(made->type)) made->type = at::kDouble;
  for (int64_t size : made->shape)
    if (size < 0) call.refuse(fmt::format("makes a tensor of shape {}", to_string(made->shape)));
  return {made};
}

Operator maker(const std::vector<std::string>& names, const std::string& becomes, Holds holds,
               double number) {
  return {names, becomes, [=](Call& call) { return make(call, holds, number); }};
}

/// Which elements share a draw.
DropoutOptions::Unit unit_of(Call& call, const MadeSymbol& mask, TensorSymbol& x) {
  using Unit = DropoutOptions::Unit;
  if (!x.view.order(call.type(x.value).shape())) call.image(x);
  const Shape whole = call.type(x.value).shape();
  const std::vector<int> order = *x.view.order(whole);
  Shape own(whole.size(), 1);
  const size_t missing = whole.size() - mask.shape.size();
  for (size_t i = 0; i < mask.shape.size(); ++i) own[order[missing + i]] = mask.shape[i];
  size_t drawn = own.size();  // the axes up to the last that is not shared
  while (drawn > 0 && own[drawn - 1] == 1) --drawn;
  const bool fits =
      std::equal(own.begin(), own.begin() + static_cast<int64_t>(drawn), whole.begin());
  if (fits && drawn <= 2)
    return drawn == 0 ? Unit::kBatch : drawn == 1 ? Unit::kSample : Unit::kChannel;
  if (own == whole) return Unit::kElement;
  call.refuse(fmt::format(
      "drops by a mask of shape {}, of a tensor {}; a mask has one draw for all, for each sample, "
      "for each channel of each sample, or for each element",
      to_string(mask.shape), to_string(whole)));
}

Symbols dropped_by(Call& call, const MadeSymbol& mask, const TensorPointer& x) {
  if (*mask.is_read)
    call.refuse("reads one random mask twice; make a mask for each use, or drop their sum");
  *mask.is_read = true;
  DropoutOptions options;
  options.probability = mask.number == 0 ? 1 : 1 - mask.probability;
  options.unit = unit_of(call, mask, *x);
  // x.div(keep) * mask is the same as x * mask.div(keep), and as a dropout that inference leaves
  // out.
  const auto scaled = call.interpreter().scalings().find(x->value);
  const bool is_scaled = scaled != call.interpreter().scalings().end();
  const double scale = mask.number * (is_scaled ? scaled->second.factor : 1);
  const bool keeps_mean = std::abs(scale * mask.probability - 1) < 1e-12;
  const ValueId value = is_scaled && keeps_mean ? scaled->second.of : x->value;
  if (!keeps_mean) options.scale = mask.number;
  return call.result(dropout(call.graph(), value, call.name("drop_path"), options), x->view);
}

/// a * x + b.
Symbols affine_of(Call& call, const TensorPointer& x, double a, double b) {
  return call.result(pointwise(call.graph(), x->value, call.name(call.op().substr(6)),
                               {PointwiseFunction::kAffine, a, b}),
                     x->view);
}

Symbols with_tensor(Call& call, const std::string& op, const MadeSymbol& made,
                    const TensorPointer& x, bool made_is_left) {
  if (broadcast_shape(made.shape, x->view.shape()) != x->view.shape())
    call.refuse(fmt::format("joins a tensor of shape {} with {}, which is smaller",
                            to_string(made.shape), to_string(x->view.shape())));
  const double alpha = call.has("alpha") ? call.real("alpha") : 1;
  if (made.holds == Holds::kDraws && op == "aten::mul") return dropped_by(call, made, x);
  if (made.holds == Holds::kNumber) {
    const double number = made.number;
    if (op == "aten::mul") return affine_of(call, x, number, 0);
    if (op == "aten::div" && !made_is_left) return affine_of(call, x, 1 / number, 0);
    if (op == "aten::add")
      return made_is_left ? affine_of(call, x, alpha, number)
                          : affine_of(call, x, 1, alpha * number);
    if (op == "aten::sub")
      return made_is_left ? affine_of(call, x, -alpha, number)
                          : affine_of(call, x, 1, -alpha * number);
  }
  call.refuse("joins " + describe(std::make_shared<MadeSymbol>(made)) +
              " with a tensor of the network in a way that Tessera does not know; it takes sums "
              "and products with numbers, and products with masks of bernoulli_");
}

/// What an operator without other tensors makes of it; none where it is none of these.
std::optional<MadeSymbol> changed(Call& call, const std::string& op, MadeSymbol made) {
  const auto number = [&](const std::string& name) {
    if (const auto given = call.scalar(name)) return *given;
    call.refuse("changes " + describe(std::make_shared<MadeSymbol>(made)) + " by " +
                describe(call[name]));
  };
  if (op == "aten::bernoulli") {
    const bool by_itself = !call.has("p") && made.holds == Holds::kNumber;
    made.probability = by_itself ? made.number : number("p");
    made.number = 1;
    made.holds = Holds::kDraws;
    if (!(made.probability >= 0 && made.probability <= 1))
      call.refuse(fmt::format("probability {} must be from 0 to 1", made.probability));
  } else if (op == "aten::fill" || op == "aten::zero") {
    made.number = op == "aten::zero" ? 0 : number("value");
    made.holds = Holds::kNumber;
  } else if (op == "aten::floor" && made.holds == Holds::kUniform && made.number >= 0 &&
             made.number <= 1) {
    made.probability = made.number;  // floor(u + p) is 1 with probability p
    made.number = 1;
    made.holds = Holds::kDraws;
  } else if ((op == "aten::add" || op == "aten::sub") && made.holds != Holds::kDraws) {
    const double alpha = call.has("alpha") ? call.real("alpha") : 1;
    made.number += (op == "aten::add" ? 1 : -1) * alpha * number("other");
  } else if ((op == "aten::mul" || op == "aten::div") && made.holds != Holds::kUniform) {
    made.number *= op == "aten::mul" ? number("other") : 1 / number("other");
  } else if (op == "aten::to" || op == "aten::type_as" || op == "aten::clone" ||
             op == "aten::contiguous" || op == "aten::detach") {
    return made;
  } else {
    return std::nullopt;
  }
  return made;
}

}  // namespace

bool write_out_numbers(const std::vector<Symbol>& arguments) {
  bool any = false;
  for (const Symbol& argument : arguments) {
    const auto* made = std::get_if<MadePointer>(&argument);
    if (!made || (*made)->holds != Holds::kNumber) continue;
    int64_t volume = 1;
    for (int64_t size : (*made)->shape)
      volume = std::min(volume * std::min(size, kMostKnownElements + 1), kMostKnownElements + 1);
    if (volume > kMostKnownElements) continue;
    (*made)->numbers = at::full((*made)->shape, (*made)->number, (*made)->type);
    (*made)->holds = Holds::kNumbers;
    any = true;
  }
  return any;
}

std::optional<Symbols> run_on_made(Call& call) {
  const MadePointer* self = call.find<MadePointer>("self");
  const MadePointer* other = call.find<MadePointer>("other");
  if (!self && !other) return std::nullopt;
  const std::string op = call.in_place() ? call.op().substr(0, call.op().size() - 1) : call.op();
  const MadeSymbol made = **(self ? self : other);
  const std::string tensor = self ? "other" : "self";
  if (call.find<TensorPointer>(tensor)) {
    if (self && call.in_place()) call.refuse("changes " + describe(*self) + " by a tensor");
    return with_tensor(call, op, made, call.tensor(tensor), self != nullptr);
  }
  if (self && op == "aten::size") {
    if (!call.has("dim")) return Symbols{known(c10::IValue(std::vector<int64_t>(made.shape)))};
    const int axis = call.wrap_axis(call.integer("dim"), static_cast<int>(made.shape.size()));
    return Symbols{c10::IValue(made.shape[axis])};
  }
  // number + made: what commutes is turned round.
  const bool turns = !self && (op == "aten::add" || op == "aten::mul");
  if (!self && !turns) return std::nullopt;
  Call turned = turns ? call.with("other", call["self"]) : call;
  const auto result = changed(turned, op, made);
  if (!result) return std::nullopt;
  if (!call.in_place()) return Symbols{std::make_shared<MadeSymbol>(*result)};
  **self = *result;
  return Symbols{*self};
}

std::vector<Operator> made_operators() {
  return {
      maker({"aten::zeros", "aten::new_zeros"},
            "zeros, for sums, products and concatenation; a constant where the code writes into "
            "parts of it (attention masks)",
            Holds::kNumber, 0),
      maker({"aten::ones", "aten::new_ones"}, "ones, as zeros", Holds::kNumber, 1),
      {{"aten::full", "aten::new_full", "aten::full_like"},
       "a number, as zeros",
       [](Call& call) { return make(call, Holds::kNumber, call.real("fill_value")); }},
      maker({"aten::empty", "aten::new_empty", "aten::empty_like"},
            "to be filled: by a number, or by bernoulli_, which makes it a dropout of samples, "
            "channels or elements where a tensor is multiplied by it (drop path)",
            Holds::kNothing, 0),
      maker({"aten::rand", "aten::rand_like"},
            "for (keep + rand(...)).floor(), which is as bernoulli_(keep)", Holds::kUniform, 0),
      {{"aten::bernoulli", "aten::fill", "aten::zero", "aten::floor"},
       "on tensors that the code has made",
       [](Call& call) -> Symbols {
         call.refuse("changes " + describe(call["self"]) +
                     "; Tessera has it for tensors that the code has made, such as "
                     "x.new_empty(shape)");
       }}};
}

}  // namespace tessera

#pragma once
// What the importer knows of a TorchScript value while it walks the user's code: numbers, strings
// and small constant tensors are known exactly, because the input's shape is; tensors of the
// network are values of the graph that is being made; weights are attributes of the module that no
// operator has taken yet.
//
// Tensors and lists have the reference semantics of Python: `out += x` changes what every other
// name of `out` reads.

#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/graph/derivation.h"
#include "tessera/graph/graph.h"
#include "tessera/import/view.h"
#include "tessera/ops/pool/pooling.h"

namespace tessera {

struct TensorSymbol;
struct ListSymbol;
struct TupleSymbol;
struct DictSymbol;

/// A floating-point tensor among the module's attributes, or a constant of its code.
struct WeightSymbol {
  std::string name;   // as in the state dict
  at::Tensor tensor;  // as it lies in the file
  Shape view;         // as the code looks at it: gamma.view(1, -1, 1, 1)
  bool trainable = false;
  bool persistent = true;
  bool derived = false;  // computed from others; in the graph already
};

struct WeightExpression;
/// What the code has computed from weights alone. Views share memory as in PyTorch
/// (weight_memory.h).
struct ComputedSymbol {
  std::shared_ptr<const WeightExpression> expression;
  bool of_module = false;                // memory of a weight, which forward() must not change
  bool may_be_copy = false;              // reshape(), contiguous(): by PyTorch's strides
  std::shared_ptr<ComputedSymbol> base;  // whose memory it shares; null: it has its own
  std::vector<WeightStep> seen;          // how it sees the base
  std::vector<std::weak_ptr<ComputedSymbol>> views;
  int64_t num_written = 0;  // elements that writes into parts of it have listed, all together
};

/// An integer tensor among the module's attributes: batch norm's counter of steps.
struct CounterSymbol {
  std::string name;
  at::Tensor tensor;
  int64_t pending = 0;  // what was added to it, for the attribute to be set
};

struct ObjectSymbol {
  c10::intrusive_ptr<c10::ivalue::Object> object;
  std::string path;  // "encoder.0", empty for the model itself
};

/// A tensor that the code makes itself, of one number or at random, to be joined with tensors of
/// the network: torch.zeros(...), x.new_empty(...).bernoulli_(0.9). Where the code writes into
/// parts of it, its numbers are known one by one from then on.
struct MadeSymbol {
  enum class Holds {
    kNothing,
    kNumber,   // `number` everywhere
    kUniform,  // uniform in [0, 1), plus `number`
    kDraws,    // `number` with a probability, else zero
    kNumbers,  // `numbers`, one by one
  };

  std::string maker;  // "aten::zeros"
  Shape shape;
  Holds holds = Holds::kNothing;
  double number = 0;
  double probability = 0;
  at::ScalarType type = at::kDouble;
  at::Tensor numbers;
  /// Random numbers are drawn where they are read, so one tensor of them is read once; shared with
  /// what is computed from it.
  std::shared_ptr<bool> is_read = std::make_shared<bool>(false);
};

/// Where a max pooling has found its maxima.
struct IndicesSymbol {
  ValueId pooled = -1;  // what was pooled
  PoolOptions options;
};

/// A result that is not part of the network (the indices of a maximum): an error where it is read.
struct UnknownSymbol {
  std::string what;
};
inline constexpr const char* kTypeOfTensor = "the type of a tensor, which --dtype decides";

using Symbol =
    std::variant<c10::IValue, std::shared_ptr<TensorSymbol>, WeightSymbol, CounterSymbol,
                 ObjectSymbol, std::shared_ptr<ListSymbol>, std::shared_ptr<TupleSymbol>,
                 std::shared_ptr<DictSymbol>, std::shared_ptr<ComputedSymbol>,
                 std::shared_ptr<MadeSymbol>, std::shared_ptr<IndicesSymbol>, UnknownSymbol>;

/// Tensors that share memory in PyTorch: a tensor and its views.
struct AliasGroup {
  std::vector<std::weak_ptr<TensorSymbol>> members;
};

struct TensorSymbol {
  ValueId value = -1;
  CodeView view;      // how the code sees the value
  std::string stale;  // why it must not be read any more; empty: it may
  std::shared_ptr<AliasGroup> aliases;
};

struct ListSymbol {
  std::vector<Symbol> items;
  std::string attribute;  // of the module, which must not change; empty: the code's own
};
struct TupleSymbol {
  std::vector<Symbol> items;
};
struct DictSymbol {
  std::vector<std::pair<Symbol, Symbol>> items;
};

/// A new tensor with memory of its own.
std::shared_ptr<TensorSymbol> make_tensor(ValueId value, CodeView view);
/// A tensor that shares `base`'s memory.
std::shared_ptr<TensorSymbol> make_view(const std::shared_ptr<TensorSymbol>& base, ValueId value,
                                        CodeView view);
/// The operator `writer` wrote `value`, seen as `view`, into the tensor: other views of its memory
/// may not be read any more.
void write_in_place(const std::shared_ptr<TensorSymbol>& tensor, ValueId value,
                    const CodeView& view, const std::string& writer);

/// A known value; lists, tuples and dictionaries are taken apart.
Symbol known(const c10::IValue& value);
/// The reverse, where nothing in it is part of the network; none otherwise.
std::optional<c10::IValue> as_known(const Symbol& symbol, const c10::TypePtr& type);
/// A made tensor whose numbers are known one by one is a known tensor, in the same memory; all else
/// is as it is.
Symbol settled(const Symbol& symbol);

/// For messages: "a tensor of the network", "an int", ...
std::string describe(const Symbol& symbol);

}  // namespace tessera

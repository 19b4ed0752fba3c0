#pragma once
// A network: operators, the values between them, and named parameters (names as in the PyTorch
// state dict, so that weights interchange). Nodes are kept in an order in which they can run.
//
// Example:
//   Graph graph;
//   ValueId x = graph.add_input("image", ValueType::image({1, 3, 64, 64}));
//   ValueId y = convolution(graph, x, "conv1", {.out_channels = 8, .kernel = {3, 3}});

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tessera/graph/derivation.h"
#include "tessera/graph/op.h"
#include "tessera/graph/value_type.h"

namespace tessera {

using ValueId = int;
using NodeId = int;
using ParameterId = int;

enum class ParameterRole {
  kTrainable,
  kFrozen,   // a weight that the optimiser leaves alone and that gets no gradient
  kBuffer,   // running statistics: not differentiated, equal on all ranks by construction
  kDerived,  // computed from others at the beginning of a step (derivation.h); it has a gradient
};
inline constexpr ParameterRole kLastParameterRole = ParameterRole::kDerived;

/// How a parameter starts: as a function of (seed, name, global index), or as given.
struct Initial {
  enum class Kind { kConstant, kUniform, kNormal, kGiven } kind = Kind::kConstant;
  double value =
      0;  // the constant, the bound (uniform in [-value, value)), or the deviation around 0
  at::Tensor given = {};  // kGiven: of the parameter's shape; never written to
};

struct Parameter {
  std::string name;
  Shape shape;
  ParameterRole role = ParameterRole::kTrainable;
  Initial initial;
  bool persistent = true;  // part of a weights file; a constant of the model's code is not
  int64_t numel() const;
};

/// One reading of a value: input `input` of node `node`.
struct Use {
  NodeId node = -1;
  int input = 0;
  bool operator==(const Use&) const = default;
};

/// A spatial size that holds for images of any size: `factor` times that of another value. A graph
/// is that of one size and works with its numbers; a file for PyTorch must do with the rule.
struct SizeRule {
  enum class By {
    kOperator,  // the value's operator was given its numbers by this rule
    kPadding,   // zeros at the end of each axis, or a crop there; no operator, since here the sizes
                // are equal
  };

  ValueId like = -1;  // computed before the value; -1: there is no rule
  int64_t factor = 1;
  By by = By::kOperator;
};

struct Value {
  std::string name;
  ValueType type;
  NodeId producer = -1;  // -1: an input of the graph
  std::vector<Use> uses;
  SizeRule size_rule = {};
};

struct Node {
  std::string name;  // unique, without spaces: "enc1.conv1"
  std::shared_ptr<const Op> op;
  std::vector<ValueId> inputs;
  ValueId output = -1;
  std::vector<ParameterId> parameters;
  std::vector<ParameterId> buffers;
  NodeTypes types;
};

class Graph {
 public:
  ValueId add_input(const std::string& name, const ValueType& type);
  /// Parameters are shared by naming one twice; then shapes and roles must agree, but a frozen or
  /// derived one may stand where a trainable one is asked for.
  ParameterId add_parameter(const Parameter& parameter);
  /// Says how a parameter with the role kDerived, which is there, is computed.
  void add_derivation(const Derivation& derivation);
  /// Gives a parameter a second name, by which the builders of operators find it: an imported
  /// weight keeps the name that it has in its file.
  void add_parameter_alias(const std::string& alias, ParameterId parameter);
  /// Replaces how a parameter starts: builders of operators give it PyTorch's default.
  void set_initial(ParameterId parameter, const Initial& initial);
  /// Infers the output's type. A number is appended to a name that is in use.
  ValueId add_node(const std::string& name, std::shared_ptr<const Op> op,
                   const std::vector<ValueId>& inputs,
                   const std::vector<ParameterId>& parameters = {},
                   const std::vector<ParameterId>& buffers = {});
  void set_size_rule(ValueId value, const SizeRule& rule);
  /// A value that the user reads (logits). Losses are found by Op::is_loss().
  void mark_output(ValueId value);

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Derivation>& derivations() const { return derivations_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const Value& value(ValueId id) const { return values_[id]; }
  const ValueType& type(ValueId id) const { return values_[id].type; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  int64_t num_trainable() const;
  /// Whether it gets a gradient.
  bool is_trained(ParameterId parameter) const;
  /// Whether a parameter gets a gradient from the node.
  bool has_trainable(const Node& node) const;

 private:
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<Parameter> parameters_;
  std::vector<Derivation> derivations_;
  std::map<std::string, ParameterId> parameter_ids_;  // by name and alias
  std::set<std::string> node_names_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
};

/// Initial value of a parameter, whole: the same for every rank and placement, and in float32 that
/// of float64, rounded.
at::Tensor initial_value(const Parameter& parameter, uint64_t seed,
                         at::ScalarType type = at::kDouble);

}  // namespace tessera

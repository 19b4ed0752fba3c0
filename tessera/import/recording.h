#pragma once
// A graph that remembers how it was built, as plain data: what was added, in order, with the names
// and numbers that the builders of ops/ were given. Built again from that, by the same builders
// with all their checks, it is the same graph. So a process that is not trusted can hand over a
// network.
//
// Builders take a Recording where they take a Graph (recorded_builders.h), and nothing else puts
// operators into one.
//
// Example:
//   Recording recording;
//   ValueId x = recording.add(AddedInput{"image", {1, 3, 64, 64}});
//   ValueId y = relu(recording, x, "act");
//   write_recording(recording, write);       // there: read_recording(read, limit)

#include <string>
#include <variant>
#include <vector>

#include "tessera/base/plain_data.h"
#include "tessera/graph/graph.h"

namespace tessera {

/// A builder of ops/.
enum class Builder {
  kAdaptiveAveragePool,
  kAdaptiveMaxPool,
  kAmax,
  kArithmetic,
  kArithmeticWithParameter,
  kAveragePool,
  kBatchNorm,
  kChannelReduction,
  kConcat,
  kContract,
  kConvolution,
  kDropout,
  kFlatten,
  kGroupNorm,
  kInstanceNorm,
  kInterpolate,
  kLayerNorm,
  kLinear,
  kMaxPool,
  kMaxUnpool,
  kPad,
  kPointwise,
  kPrelu,
  kRearrange,
  kRelu,
  kSlice,
  kSoftmax,
  kSpatialReduction,
  kSqueeze,
  kTransposedConvolution,
  kUnsqueeze,
};
inline constexpr Builder kLastBuilder = Builder::kUnsqueeze;

/// One call of a builder. Its options are bytes (plain_data.h).
struct BuilderCall {
  Builder builder = Builder::kRelu;
  std::vector<ValueId> inputs;
  std::string name;
  std::string options;
};

struct AddedInput {
  std::string name;
  Shape shape;  // of an image, or batch x features
};
struct AddedAlias {
  std::string alias;
  ParameterId parameter = -1;
};
/// A weight that is computed from others, as a parameter of this name.
struct AddedDerivation {
  std::string name;
  std::vector<ParameterId> sources;
  std::vector<WeightStep> steps;
};
struct MarkedOutput {
  ValueId value = -1;
};

class Recording {
 public:
  using Statement =
      std::variant<AddedInput, Parameter, AddedAlias, BuilderCall, MarkedOutput, AddedDerivation>;

  // All throw InvalidInput as the builders do, and where a statement names what is not there.
  ValueId add(const AddedInput& input);
  ParameterId add(const Parameter& parameter);
  void add(const AddedAlias& alias);
  ParameterId add(const AddedDerivation& derivation);
  ValueId add(const BuilderCall& call);
  void add(const MarkedOutput& output);

  const Graph& graph() const { return graph_; }
  const ValueType& type(ValueId value) const { return graph_.type(value); }
  const std::vector<Statement>& statements() const { return statements_; }

 private:
  Graph graph_;
  std::vector<Statement> statements_;
};

void write_recording(const Recording& recording, PlainWriter& write);

/// Throws InvalidInput where it does not hold together, or its weights take more than `most_bytes`.
Recording read_recording(PlainReader& read, int64_t most_bytes);

/// Runs the builder. Throws InvalidInput where the call does not fit the graph.
ValueId build(Graph& graph, const BuilderCall& call);

}  // namespace tessera

#pragma once
// What a network is made of and what it costs, before anything runs: one row per operator, totals,
// and the spread of each kind of operator. All numbers are those of the whole graph on one device;
// what a placement needs of each rank is `tessera plan`'s answer.
//
// Costs are those of a forward pass. Backward has no column: its cost depends on which gradients
// are wanted and what is recomputed, which only a lowered program knows.
//
// Example:
//   const GraphProfile profiled = profile(build_model("unet2d"), at::kFloat);
//   fmt::print("{}", to_table(profiled));

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/inspect/halo.h"
#include "tessera/inspect/receptive_field.h"

namespace tessera {

struct OperatorProfile {
  std::string name;
  std::string kind;
  std::string settings;
  Shape output_shape;          // empty: nothing is stored (a loss)
  int64_t parameters = 0;      // weights that it uses, without running statistics
  int64_t new_parameters = 0;  // ... that no operator before it uses
  double flops = 0;            // of forward, on the whole output
  int64_t output_bytes = 0;
  ReceptiveField field;         // of the pixel in the middle of its output
  std::vector<HaloAxis> halo;   // per spatial axis of its inputs
  bool has_statistics = false;  // sums over the whole image besides
};

/// The median of an even number is the mean of the two in the middle.
template <class Number>
struct Spread {
  Number min = 0;
  double median = 0;
  Number max = 0;
};

/// The operators of one kind.
struct KindProfile {
  std::string kind;
  int64_t count = 0;
  Spread<double> flops;
  Spread<int64_t> output_bytes;
  Spread<int64_t> parameters;  // as each operator uses them
  double total_flops = 0;
  int64_t total_output_bytes = 0;
  int64_t total_parameters = 0;  // each counted once, at its first use
};

struct GraphProfile {
  at::ScalarType real = at::kFloat;
  std::vector<OperatorProfile> operators;  // in the order of the graph, by NodeId
  std::vector<KindProfile> kinds;          // the most FLOPs first

  // Totals. A parameter that several operators share counts once.
  int64_t parameters = 0;
  int64_t trainable_parameters = 0;
  int64_t parameter_bytes = 0;
  int64_t buffer_bytes = 0;  // running statistics
  double flops = 0;
  int64_t output_bytes = 0;  // all outputs together
};

/// `real`: the type of real numbers, at::kFloat or at::kDouble.
GraphProfile profile(const Graph& graph, at::ScalarType real);

}  // namespace tessera

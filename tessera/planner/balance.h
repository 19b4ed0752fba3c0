#pragma once
// Cuts a network into stages: which node runs on which stage, so that the largest stage is as small
// as it can be. "Large" is counted in layers, parameters, bytes or time.
//
// Example:
//   plan.stage_of = balance(graph, plan, {.by = BalanceBy::kMemory});

#include <map>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

enum class BalanceBy {
  kLayers,      // nodes with weights: the even split that people make by hand
  kParameters,  // numbers in weights
  kMemory,      // peak bytes of a rank, as the simulator counts them
  kTime,        // kernels of forward and backward on a rank, by the roofline (cost_model.h)
};

/// "layers", "parameters", "memory", "time".
std::string to_string(BalanceBy by);
std::vector<std::string> balance_names();
/// Throws InvalidInput, naming the legal ones.
BalanceBy parse_balance(const std::string& name);

struct BalanceOptions {
  BalanceBy by = BalanceBy::kTime;
  at::ScalarType real = at::kFloat;
  at::DeviceType device = at::kCPU;  // whose kernels run
  int64_t optimiser_copies = 0;  // of the parameters, counted with the bytes
  int chunks_per_stage = 2;      // of the interleaved schedule; 1 for all others
};

/// The stage of every node, by name, for the plan's stages, micro-batches and schedule; its
/// `stage_of` is not looked at. Throws InvalidInput where there are fewer nodes than stages.
std::map<std::string, int> balance(const Graph& graph, const Plan& plan,
                                   const BalanceOptions& options);

/// Stages as people write them into a file: one JSON list per stage of node names or of beginnings
/// that end in '*' ("enc1.*"); the longest that fits a node counts. Throws InvalidInput that names
/// the file for a node that nothing fits, a name that fits nothing, and a stage without nodes.
std::map<std::string, int> balance_from_json(const Graph& graph, int num_stages,
                                             const std::string& text, const std::string& file_name);
std::map<std::string, int> read_balance(const Graph& graph, int num_stages,
                                        const std::string& path);

}  // namespace tessera

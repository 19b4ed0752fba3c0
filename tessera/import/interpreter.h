#pragma once
// Walks the inlined graph of a TorchScript module once, for one input shape, and adds to a graph
// what the code does to tensors. Nothing of the user's code computes: conditions, loops and sizes
// are known numbers, and tensors are only names for values of the graph.
//
//   prim:: control flow, lists, attributes          here
//   operators on known numbers                      known_operators.h
//   operators on tensors of the network             operators.h, through Call

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/import/recording.h"
#include "tessera/import/symbol.h"

namespace tessera {

class Interpreter {
 public:
  /// `file` is named in messages.
  Interpreter(Recording& graph, std::string file) : graph_(graph), file_(std::move(file)) {}

  /// What forward() returns for the image. Throws Unsupported or InvalidInput with the operator,
  /// its place in the user's source, and a remedy.
  Symbol run(const torch::jit::Module& module, ValueId image);

  /// Batch norms' counters of steps that forward() counts up, by their names in the state dict.
  const std::map<std::string, int64_t>& counters() const { return counters_; }

  /// Second names of tied weights in the state dict, with the name that they have in the graph.
  const std::map<std::string, std::string>& ties() const { return ties_; }

  // For Call.

  Recording& graph() { return graph_; }
  ParameterId add_weight(const WeightSymbol& weight, ParameterRole role);
  /// Puts a weight that is computed from others into the graph.
  WeightSymbol derive(const std::shared_ptr<const WeightExpression>& expression);
  /// forward() writes the buffer. Refuses a second time.
  void note_update(const torch::jit::Node& node, const WeightSymbol& buffer);
  /// Values that are others times a number.
  struct Scaling {
    ValueId of = -1;
    double factor = 1;
  };
  std::map<ValueId, Scaling>& scalings() { return scalings_; }
  /// A tensor of the module's code as a frozen weight.
  WeightSymbol constant(const at::Tensor& tensor);
  void count_up(const CounterSymbol& counter, int64_t by) { counters_[counter.name] += by; }
  /// "[model.pt] aten::sort at net.py:12: why".
  [[noreturn]] void refuse(const torch::jit::Node& node, const std::string& why) const;
  /// "encoder.0.relu": where in the module tree the operator stands.
  std::string node_name(const torch::jit::Node& node, const std::string& kind) const;

 private:
  using Node = torch::jit::Node;

  std::vector<Symbol> run_block(const torch::jit::Block& block);
  void run_node(const Node& node);
  void run_if(const Node& node);
  void run_loop(const Node& node);
  void run_operator(const Node& node);
  bool run_structure(const Node& node);
  Symbol attribute(const Node& node);
  std::string name_of(const Node& node, const at::Tensor& tensor, const std::string& path,
                      bool is_parameter);
  void set_attribute(const Node& node);
  void raise(const Node& node);

  const Symbol& input(const Node& node, size_t index) const;
  std::vector<Symbol> inputs(const Node& node) const;
  void bind(const Node& node, size_t output, Symbol symbol);
  void bind_all(const Node& node, const std::vector<Symbol>& symbols);

  Recording& graph_;
  std::string file_;
  std::unordered_map<const torch::jit::Value*, Symbol> symbols_;
  std::map<std::string, int64_t> counters_;
  /// A weight's place in its storage.
  struct Memory {
    std::string name;
    std::string key;
    int64_t begin = 0;
    int64_t end = 0;
    bool is_parameter = false;
  };
  std::map<const void*, std::vector<Memory>> memories_;
  std::map<std::string, std::string> first_names_;  // of parameters, by their place in memory
  std::map<std::string, std::string> ties_;
  std::map<std::shared_ptr<const WeightExpression>, WeightSymbol> derived_;
  std::set<std::string> updated_buffers_;
  std::map<ValueId, Scaling> scalings_;
  int64_t num_constants_ = 0;
  int64_t num_steps_ = 0;
};

}  // namespace tessera

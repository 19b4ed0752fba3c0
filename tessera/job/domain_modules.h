#pragma once
// A domain separation network out of a user's own modules, each a TorchScript file: the shared
// encoder, the private one, the decoder and the head stand in place of the parts of the model
// `dsn`, whose options for domains and losses hold. Images and codes may have any number of spatial
// axes; a code without any is one of features.
//
// Example:
//   build_from_modules("dsn:targets=2,similarity=mmd",
//                      {"shared.pt", "private.pt", "decoder.pt", "head.pt"}, {8, 3, 32, 32},
//                      [](Graph& graph) { add_losses(graph, {}); });

#include <functional>
#include <map>
#include <string>

#include "tessera/graph/graph.h"
#include "tessera/import/closed_child.h"

namespace tessera {

/// The files of --encoder, --private, --decoder and --head.
struct DomainModules {
  std::string encoder;
  std::string private_encoder;
  std::string decoder;
  std::string head;

  bool any() const;
};

struct DomainModel {
  Graph graph;  // parameters are called shared.*, private0.*, ..., decoder.*, head.*
  std::map<std::string, std::string> ties;  // see ImportedModel
};

/// `add_task_losses` gets the graph as soon as the head's outputs are marked. Throws InvalidInput
/// where modules are missing or do not fit together, and as the importer does.
DomainModel build_from_modules(const std::string& model, const DomainModules& modules,
                               const Shape& input,
                               const std::function<void(Graph&)>& add_task_losses,
                               WithoutFilter without_filter = WithoutFilter::kRefuse);

}  // namespace tessera

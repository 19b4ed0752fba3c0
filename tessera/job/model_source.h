#pragma once
// The MODEL argument of the commands: a zoo model with options, or a file that torch.jit.script or
// torch.jit.trace saved; with the loss that the user wants.

#include <map>
#include <string>

#include "tessera/graph/graph.h"
#include "tessera/job/domain_modules.h"
#include "tessera/loss/add_losses.h"

namespace tessera {

/// As the user typed them.
struct ModelSource {
  std::string model;
  std::string input;           // 1x3x512x512; empty: the zoo model's own
  std::string loss;            // see loss_spec.h; empty: the model's own, or what fits its outputs
  std::string output_weights;  // 1,0.4: of the losses of several outputs
  DomainModules modules = {};  // in place of the model's parts; none: it has its own
  bool trusted = false;        // read a file also where its code cannot be closed in
};

struct LoadedModel {
  Graph graph;                              // with losses
  std::string name;                         // as the user wrote it
  std::string file;                         // empty: from the zoo
  bool has_weights = false;                 // of its own, from files
  bool trusted = false;                     // see ModelSource
  std::map<std::string, std::string> ties;  // see ImportedModel
  std::map<std::string, int64_t> counters;  // see ImportedModel
};

/// Throws InvalidInput and Unsupported as the zoo and the importer do.
LoadedModel load_model(const ModelSource& source);

/// What --loss and --output-weights say; an empty loss is the one that fits the outputs.
LossOptions loss_options(const Graph& graph, const std::string& loss,
                         const std::string& output_weights);

/// Writes the weights (as graph.parameters()) after `steps` training steps: a path that ends in .pt
/// gets the model's own file again, or that of a zoo model, which PyTorch loads; others a
/// safetensors file.
void save_model_weights(const std::string& path, const LoadedModel& model,
                        const std::vector<at::Tensor>& values, int64_t steps);

/// Throws Unsupported, before anything runs, where save_model_weights could not write that path.
void check_weights_path(const std::string& path, const LoadedModel& model);

}  // namespace tessera

#pragma once
// The models that Tessera brings along, by name and options: "unet2d:base=16,depth=3,classes=4".
// One file per model; the registry below knows them all.
//
// Example:
//   Graph graph = build_model("unet2d:base=16,norm=none", {1, 3, 96, 80});

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/key_values.h"
#include "tessera/graph/graph.h"

namespace tessera {

using OptionInfo = KeyInfo;  // as `tessera models` shows it
using ModelOptions = KeyValues;

struct ModelInfo {
  std::string name;
  std::string summary;  // one line
  int num_spatial = 2;
  Shape default_input;
  std::vector<OptionInfo> options;
  std::function<Graph(const ModelOptions& options, const Shape& input)> build;
};

/// All models, by family.
const std::vector<ModelInfo>& models();

/// Splits "name:key=value,..." and finds the model. Throws InvalidInput for an unknown model
/// (naming the known ones), an unknown or repeated option (naming the legal ones) and malformed
/// text.
const ModelInfo& find_model(const std::string& spec);

/// The whole training graph: input "image", logits as first output (then those of an
/// auxiliary classifier), cross entropy against input "target", which has the logits' size. Models
/// for several domains have their inputs and losses besides (domains.h).
/// An empty `input` takes the model's default. Throws InvalidInput where the input does not fit.
Graph build_model(const std::string& spec, const Shape& input = {});

}  // namespace tessera

#pragma once
// The models that Tessera brings along, by name and options: "unet2d:base=16,depth=3,classes=4".
// One file per model; the registry below knows them all.
//
// Example:
//   Graph graph = build_model("unet2d:base=16,norm=none", {1, 3, 96, 80});

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// One option of a model, as `tessera models` shows it.
struct OptionInfo {
  std::string name;
  std::string default_value;
  std::string help;  // with the legal values
};

/// Options of one model as the user gave them; getters know the defaults and check the values.
class ModelOptions {
 public:
  ModelOptions(std::string model, std::vector<OptionInfo> known,
               std::map<std::string, std::string> given);

  /// Throws InvalidInput, with the legal range, where the value is no number or outside [low,
  /// high].
  int64_t integer(const std::string& name, int64_t low, int64_t high) const;
  double real(const std::string& name, double low, double high) const;
  /// Throws InvalidInput, with the legal values, where the value is none of them.
  std::string choice(const std::string& name, const std::vector<std::string>& legal) const;

 private:
  const std::string& text(const std::string& name) const;

  std::string model_;
  std::map<std::string, std::string> values_;
};

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

/// The whole training graph: input "image", logits as first output (behind them those of an
/// auxiliary classifier), cross entropy against input "target", which has the logits' size.
/// An empty `input` takes the model's default. Throws InvalidInput where the input does not fit.
Graph build_model(const std::string& spec, const Shape& input = {});

}  // namespace tessera

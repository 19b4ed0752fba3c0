#pragma once
// Which normalisation follows a model's convolutions, as its options `norm` and `groups` say.
//
// Example:
//   const NormChoice norm = read_any_norm(options);
//   x = norm.add(graph, x, "enc1.norm1");

#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/zoo/zoo.h"

namespace tessera {

struct NormChoice {
  enum class Kind { kNone, kBatch, kInstance, kGroup };

  Kind kind = Kind::kNone;
  int64_t groups = 1;  // of kGroup

  /// The norm with its weight and bias, by PyTorch's names; x itself where there is none.
  ValueId add(Graph& graph, ValueId x, const std::string& name) const;
  /// Whether a bias before the norm changes what comes after it. The mean of a channel takes it
  /// away again; that of a group of channels does not.
  bool leaves_bias() const { return kind == Kind::kNone || kind == Kind::kGroup; }
};

/// `norm`: batch or none.
OptionInfo norm_option(const std::string& default_value = "batch");
NormChoice read_norm(const ModelOptions& options);

/// The options of a model with any norm: `norm` and, for group norm, `groups`.
std::vector<OptionInfo> with_any_norm(std::vector<OptionInfo> options,
                                      const std::string& default_norm = "batch");
NormChoice read_any_norm(const ModelOptions& options);

}  // namespace tessera

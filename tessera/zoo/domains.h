#pragma once
// What the models for several domains share (Bousmalis et al., "Domain Separation Networks", 2016;
// Ganin et al., "Domain-Adversarial Training of Neural Networks", 2016): a labelled source, N
// unlabelled targets, and losses that pull shared codes together and push private ones away.
//
//                 ┌ shared encoder ─► code ─┬─► head ─► logits, loss      (source only)
//   image of a ───┤                         ├─► similarity to the other domains
//     domain      │                         ├─► difference from the private code
//                 └ private encoder ► code ─┴─► decoder ─► reconstruction
//
// Shared encoder, head, decoder and classifiers of domains have one set of weights; each domain has
// a private encoder of its own. The source is input "image" with labels "target"; the targets are
// inputs "image1" to "imageN".

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/step_function.h"
#include "tessera/graph/graph.h"
#include "tessera/zoo/zoo.h"

namespace tessera {

/// The options of all of them: targets, target_batch, gamma, similarity, start, ramp, lambda_ramp.
std::vector<OptionInfo> with_domains(std::vector<OptionInfo> options, double gamma);
/// And those of reconstructions and private codes: alpha, beta.
std::vector<OptionInfo> with_separation(std::vector<OptionInfo> options);
/// What `gamma` is in the network of "Domain Separation Networks".
inline constexpr double kSeparationGamma = 0.25;

/// What the shared encoder makes of an image.
struct DomainCodes {
  ValueId image = -1;
  ValueId shared = -1;
  ValueId features = -1;            // of the code: batch x features, whose domain is asked for
  std::vector<ValueId> skips = {};  // what the head reads besides
};

/// The parts of a model. Parts that are called for several domains share their weights by name.
struct DomainParts {
  std::function<DomainCodes(Graph& graph, ValueId image)> encode;
  /// The task on the source; adds its output and loss.
  std::function<void(Graph& graph, const DomainCodes& codes)> solve;
  /// The private code, of the shared one's shape, by weights called `prefix`...; null: none.
  std::function<ValueId(Graph& graph, ValueId image, const std::string& prefix)> encode_private =
      {};
  /// The image back from the sum of both codes; needed with private codes.
  std::function<ValueId(Graph& graph, ValueId code, const DomainCodes& codes)> decode = {};
};

/// The training graph of all domains. A target's images have the source's shape, in batches of
/// their own size where target_batch says so.
Graph build_domains(const ModelOptions& options, const Shape& input, const DomainParts& parts);

}  // namespace tessera

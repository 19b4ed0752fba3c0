#pragma once
// The sum, mean or maximum over the channels of each pixel: what spatial attention looks at. The
// maximum keeps for each pixel which channel it was; sum and mean keep nothing.

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

struct ChannelReductionOptions {
  /// The gradient of the maximum goes to one channel, the first of equal ones, as that of
  /// torch.max(x, 1).
  enum class How { kSum, kMean, kMax };

  How how = How::kMean;
};

/// Takes batch x channels x space (or none) to batch x 1 x space. The operator's kind is
/// "channel_sum", "channel_mean" or "channel_max".
ValueId channel_reduction(Graph& graph, ValueId x, const std::string& name,
                          const ChannelReductionOptions& options);

}  // namespace tessera

#pragma once
// What adaptive average and max pooling share: the types and boxes of their values, and the windows
// of a piece.

#include <cstdint>
#include <string>

#include "tessera/graph/op.h"
#include "tessera/kernels/adaptive_pool.h"
#include "tessera/ops/pool/adaptive_pool.h"

namespace tessera {

class AdaptiveGeometry {
 public:
  explicit AdaptiveGeometry(const AdaptivePoolOptions& options) : options_(options) {}

  /// "7x7", with 0 where the input's size is kept.
  std::string settings() const;
  ValueType infer_type(const ValueType& input) const;
  Box needed(const Box& out, const NodeTypes& types) const;
  AdaptivePiece piece(const Box& out, const NodeTypes& types) const;
  /// Sizes of the output for an input with this space.
  Shape output_space(const Shape& input_space) const;

 private:
  AdaptivePoolOptions options_;
};

}  // namespace tessera

#pragma once
// What max and average pooling share before anything runs: the types and boxes of their values, and
// which taps of which windows lie inside the image. Their loops share pool_loops.h.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/geometry/window.h"
#include "tessera/graph/op.h"
#include "tessera/ops/pool/pooling.h"

namespace tessera {

/// One of the axes D, H, W. Output o has its taps at o * stride - padding + k * dilation.
struct PoolAxis {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t padding = 0;
  int64_t input_size = 1;
  Range out{0, 1};  // outputs of the piece
  Range in{0, 1};   // inputs that they need, inside the image

  int64_t tap(int64_t output, int64_t k) const { return output * stride - padding + k * dilation; }
  /// The k whose taps of this output lie inside the image.
  Range taps_inside(int64_t output) const;
  /// The outputs of the piece whose tap k lies inside the image.
  Range outputs_inside(int64_t k) const;
};

/// A piece of a pooling's output on the axes D, H, W; axes that the value lacks have kernel 1.
using PoolPiece = std::array<PoolAxis, 3>;

class PoolGeometry {
 public:
  explicit PoolGeometry(const PoolOptions& options) : options_(options) {}

  ValueType infer_type(const ValueType& input) const;
  /// Clipped to the image.
  Box needed(const Box& out, const NodeTypes& types) const;
  PoolPiece piece(const Box& out, const NodeTypes& types) const;
  /// Elements of a window, padding included.
  int64_t kernel_volume(const NodeTypes& types) const;
  /// "2x2, stride 2, padding 1".
  std::string settings() const;
  const PoolOptions& options() const { return options_; }

  /// Options along each of the spatial axes.
  std::vector<int64_t> kernel(int num_spatial) const;
  std::vector<int64_t> stride(int num_spatial) const;
  std::vector<int64_t> padding(int num_spatial) const;
  std::vector<int64_t> dilation(int num_spatial) const;
  Window window(int spatial_index, int num_spatial) const;

 private:
  PoolOptions options_;
};

}  // namespace tessera

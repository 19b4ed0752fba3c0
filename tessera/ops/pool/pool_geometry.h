#pragma once
// What max and average pooling share before anything runs: the types and boxes of their values, and
// the windows of a piece.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/geometry/window.h"
#include "tessera/graph/op.h"
#include "tessera/kernels/pool.h"
#include "tessera/ops/pool/pooling.h"

namespace tessera {

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
  /// Whether an element may lie in several windows.
  bool windows_overlap() const;
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

#pragma once
// Convolution over 1, 2 or 3 spatial axes. Its kernels run without padding on the exact box that a
// piece needs: the borders of the image are zeros in that box, so a piece at the border and a piece
// in the middle run the same code, and padding may differ between the two sides of an axis.
//
// Example:
//   ValueId y = convolution(graph, x, "conv1", {.out_channels = 8, .kernel = {3}, .padding = {1}});

#include <string>
#include <vector>

#include "tessera/geometry/window.h"
#include "tessera/graph/graph.h"

namespace tessera {

/// Each list has one entry per spatial axis, or one for all.
struct ConvolutionOptions {
  int64_t out_channels = 0;
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride = {1};
  std::vector<int64_t> dilation = {1};
  std::vector<int64_t> padding = {0};
  std::vector<int64_t> padding_high = {};  // at the end of each axis; empty: as padding
  int64_t groups = 1;
  bool bias = true;
};

/// Parameters: name.weight [out, in / groups, kernel...] and name.bias [out], as torch.nn.Conv2d.
/// Throws InvalidInput where options and input do not fit.
ValueId convolution(Graph& graph, ValueId x, const std::string& name,
                    const ConvolutionOptions& options);

// What transposed convolution shares.

/// The windows of a product over channels, one per spatial axis.
struct ConvolutionGeometry {
  std::vector<Window> windows;
  int64_t out_channels = 0;
  int64_t groups = 1;

  std::vector<int64_t> stride() const;
  std::vector<int64_t> dilation() const;
  std::vector<int64_t> no_padding() const { return std::vector<int64_t>(windows.size(), 0); }
  int64_t kernel_volume() const;
  /// "3x3, stride 2, dilation 2, padding 1, groups 8"; defaults are left out.
  std::string settings() const;
  /// Throws InvalidInput where channels do not divide or the image is too small.
  ValueType infer_type(const ValueType& input) const;
  Box needed(const Box& out, const ValueType& input) const;
};

/// Throws InvalidInput, beginning with `place`, unless `input` has batch, channels and space.
void check_is_image(const ValueType& input, const std::string& place);

/// "3x3".
std::string sizes_text(const std::vector<int64_t>& sizes);

/// `values` for each of `num_spatial` axes. Throws InvalidInput, beginning with `what`, unless
/// there are 1 or `num_spatial` of them, and each is at least `least`.
std::vector<int64_t> entry_per_axis(const std::vector<int64_t>& values, int num_spatial,
                                    int64_t least, const std::string& what);

}  // namespace tessera

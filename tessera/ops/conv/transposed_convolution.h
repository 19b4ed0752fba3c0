#pragma once
// Transposed convolution ("up-convolution") over 1, 2 or 3 spatial axes. A piece of the output is
// cut from the product of all inputs that reach into it:
//
//   needed inputs            [ i ][ i ][ i ]
//   what they reach       |------------------|      the product, without padding
//   the piece                  |---------------|    product where it reaches, else the bias alone
//
// With kernel 2 and stride 2 on pieces cut at even positions both are equal, and nothing is copied.
//
// Example:
//   ValueId y = transposed_convolution(graph, x, "up1",
//                                      {.out_channels = 8, .kernel = {2}, .stride = {2}});

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Each list has one entry per spatial axis, or one for all.
struct TransposedConvolutionOptions {
  int64_t out_channels = 0;
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride = {1};
  std::vector<int64_t> dilation = {1};
  std::vector<int64_t> padding = {0};         // cut from both ends of the product
  std::vector<int64_t> output_padding = {0};  // put at its end; less than stride or dilation
  int64_t groups = 1;
  bool bias = true;
};

/// Parameters: name.weight [in, out / groups, kernel...] and name.bias [out], as
/// torch.nn.ConvTranspose2d. Throws InvalidInput where options and input do not fit.
ValueId transposed_convolution(Graph& graph, ValueId x, const std::string& name,
                               const TransposedConvolutionOptions& options);

}  // namespace tessera

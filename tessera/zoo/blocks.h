#pragma once
// The parts that several models are made of.

#include <string>

#include "tessera/graph/graph.h"
#include "tessera/zoo/zoo.h"

namespace tessera {

enum class Norm { kBatch, kNone };

OptionInfo norm_option();
Norm read_norm(const ModelOptions& options);

/// Convolution 3^d with same padding, norm, ReLU. The nodes are prefix.conv<suffix>,
/// prefix.norm<suffix> and prefix.relu<suffix>. The convolution has a bias only where no norm
/// would take it away again.
ValueId conv_norm_relu(Graph& graph, ValueId x, const std::string& prefix,
                       const std::string& suffix, int64_t channels, Norm norm);

/// Max pooling 2^d, which drops the last row of an odd size.
ValueId halve(Graph& graph, ValueId x, const std::string& name);

/// Zeros at the end of each spatial axis up to the size of `like`; no node where nothing is
/// missing. An upsampled map is shorter than its skip by what pooling dropped on the way down.
ValueId pad_to(Graph& graph, ValueId x, ValueId like, const std::string& name);

/// Marks the logits as output and adds the loss against a new input "target".
void finish_with_cross_entropy(Graph& graph, ValueId logits);

/// Throws InvalidInput, with `remedy` at its end, where a spatial size is less than `least`.
void check_spatial_sizes(const std::string& model, const Shape& input, int64_t least,
                         const std::string& remedy);

}  // namespace tessera

#pragma once
// The parts that several models are made of.

#include <string>

#include "tessera/graph/graph.h"
#include "tessera/zoo/norm_choice.h"
#include "tessera/zoo/zoo.h"

namespace tessera {

/// What a convolution 3^d does at the border of the image.
enum class Border {
  kSame,   // zeros around it: the size stays
  kValid,  // nothing: one pixel less at each end
};

/// `channels` of a network whose first convolution has `default_width` of them, for one with
/// `width` there; at least 1.
int64_t scaled_channels(int64_t channels, int64_t width, int64_t default_width);

/// The names of the modules in a PyTorch Sequential: "features.0", "features.1", ...
class Sequential {
 public:
  explicit Sequential(std::string name) : name_(std::move(name)) {}
  std::string next() { return name_ + "." + std::to_string(index_++); }

 private:
  std::string name_;
  int index_ = 0;
};

/// Convolution 3^d, norm, ReLU. The nodes are prefix.conv<suffix>, prefix.norm<suffix> and
/// prefix.relu<suffix>. The convolution has a bias only where no norm would take it away again.
ValueId conv_norm_relu(Graph& graph, ValueId x, const std::string& prefix,
                       const std::string& suffix, int64_t channels, const NormChoice& norm,
                       Border border = Border::kSame);

/// Two of them with suffixes 1 and 2: a level of a U-Net.
ValueId two_convolutions(Graph& graph, ValueId x, const std::string& level, int64_t channels,
                         const NormChoice& norm, Border border = Border::kSame);

/// Dropout; no node where the probability is 0.
ValueId drop(Graph& graph, ValueId x, const std::string& name, double probability);

/// Max pooling 2^d, which drops the last row of an odd size.
ValueId halve(Graph& graph, ValueId x, const std::string& name);

/// Zeros at the end of each spatial axis up to the size of `like`, or a crop there down to it; no
/// node where the sizes agree. An upsampled map is shorter than its skip by what pooling dropped
/// on the way down, or longer by what a strided convolution made of the zeros at the border.
ValueId fit_to(Graph& graph, ValueId x, ValueId like, const std::string& name);

/// Marks the logits as output and adds the loss against a new input "target".
void finish_with_cross_entropy(Graph& graph, ValueId logits);

/// Throws InvalidInput, with `remedy` at its end, where a spatial size is less than `least`.
void check_spatial_sizes(const std::string& model, const Shape& input, int64_t least,
                         const std::string& remedy);

}  // namespace tessera

#pragma once
// What convolution and transposed convolution share: their geometry, and that they read dense
// buffers.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/kernels/convolution.h"
#include "tessera/kernels/space_sum.h"
#include "tessera/ops/conv/convolution.h"

namespace tessera {

/// The options that both have, with an entry for each spatial axis. Throws InvalidInput, with
/// `place` in front, for an input that is not an image and for entries that are not legal.
struct ConvolutionEntries {
  template <class Options>
  ConvolutionEntries(const Options& options, const ValueType& input, std::string where)
      : num_spatial(input.num_spatial()), place(std::move(where)) {
    check_is_image(input, place);
    read({options.groups}, 1, "groups");
    read({options.out_channels}, 1, "out_channels");
    kernel = read(options.kernel, 1, "kernel");
    stride = read(options.stride, 1, "stride");
    dilation = read(options.dilation, 1, "dilation");
  }
  std::vector<int64_t> read(const std::vector<int64_t>& values, int64_t least,
                            const char* what) const {
    return entry_per_axis(values, num_spatial, least, place + " " + what);
  }

  int num_spatial;
  std::string place;
  std::vector<int64_t> kernel, stride, dilation;
};

/// The phases of a layer of products that are products.
inline bool is_product(Phase phase) {
  return phase == Phase::kForward || phase == Phase::kInputGradient ||
         phase == Phase::kWeightGradient;
}

class ConvolutionOp : public Op {
 public:
  ConvolutionOp(ConvolutionGeometry geometry, bool bias)
      : geometry_(std::move(geometry)),
        bias_(bias),
        stride_(geometry_.stride()),
        dilation_(geometry_.dilation()),
        no_padding_(geometry_.no_padding()),
        shape_{stride_, dilation_, geometry_.groups} {}

  /// The same operator, product by product.
  virtual std::shared_ptr<const Op> direct() const = 0;

  std::string settings() const final { return geometry_.settings(); }
  ValueType infer_type(std::span<const ValueType> inputs) const final {
    return geometry_.infer_type(inputs[0]);
  }
  Box needed(int, const Box& out, const NodeTypes& types) const final {
    return geometry_.needed(out, types.inputs[0]);
  }
  InputAccess input_access(int) const final { return InputAccess::kDense; }
  bool takes_narrow(Phase phase, at::DeviceType device) const final {
    return is_product(phase) && multiplies_bf16(shape_, device);
  }
  bool keeps_input(int) const final { return true; }
  double elements_moved(const Box& out, const NodeTypes& types) const final {
    // The weight has as many elements whether it is [out, in / groups] or [in, out / groups].
    const int64_t weight = types.inputs[0].channels() * geometry_.out_channels / geometry_.groups *
                           geometry_.kernel_volume();
    return Op::elements_moved(out, types) +
           static_cast<double>(weight + (bias_ ? geometry_.out_channels : 0));
  }

 protected:
  template <class Convolution>
  static std::shared_ptr<const Op> made_direct(Convolution copy) {
    copy.shape_.method = ConvolutionMethod::kDirect;
    return std::make_shared<Convolution>(std::move(copy));
  }
  /// `coarse` is the image of fewer positions: the output, or of a transposed one the input.
  ScratchBytes kernel_scratch_bytes(Phase phase, const Shape& weight, const Box& coarse,
                                    const Numbers& numbers) const {
    if (phase == Phase::kWeightGradient)
      return convolution_gradient_scratch_bytes(shape_, weight, coarse.shape(), numbers.type,
                                                numbers.device);
    return is_product(phase)
               ? convolution_scratch_bytes(shape_, weight, numbers.type, numbers.device)
               : ScratchBytes();
  }
  /// Of a convolution from `second` channels to `first`, or of a transposed one the other way
  /// round.
  Shape weight_shape(int64_t first, int64_t second) const {
    Shape shape{first, second / geometry_.groups};
    for (const Window& window : geometry_.windows) shape.push_back(window.kernel);
    return shape;
  }
  /// Adds the sums over all pixels of the output's gradient.
  static void add_bias_gradient(const KernelArgs& args) {
    const at::Tensor &dy = args.grad_output.tensor, &gradient = args.grad_parameters[1];
    if (dy.numel() == 0) return;
    const at::Tensor sums = at::empty({dy.size(0), dy.size(1)}, gradient.options());
    sum_space(dy, 1, sums);
    gradient.add_(sums.sum(0));
  }

  ConvolutionGeometry geometry_;
  bool bias_;
  // As ATen takes them; made once, for kernels run often.
  std::vector<int64_t> stride_, dilation_, no_padding_;
  ConvolutionShape shape_;
};

}  // namespace tessera

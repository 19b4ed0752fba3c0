#include "tessera/ops/pointwise/dropout.h"

#include <ATen/Dispatch.h>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/kernels/cpu/rows.h"

namespace tessera {
namespace {

class Dropout : public Op {
 public:
  explicit Dropout(const DropoutOptions& options)
      : probability_(options.probability), scale_(probability_ < 1 ? 1 / (1 - probability_) : 0) {}

  std::string kind() const override { return "dropout"; }
  std::string settings() const override { return fmt::format("p {}", probability_); }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    if (!(probability_ >= 0 && probability_ <= 1))
      throw_error<InvalidInput>("probability {} must be in [0, 1]", probability_);
    if (inputs[0].element != Element::kReal)
      throw_error<InvalidInput>("the input holds labels; give real numbers");
    return inputs[0];
  }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool cheap_to_recompute() const override { return true; }

  void forward(KernelArgs& args) const override {
    apply_mask(args, args.inputs[0].view(args.out_box), args.output.view(args.out_box));
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.grad_inputs[0].tensor.defined())
      apply_mask(args, args.grad_output.tensor, args.grad_inputs[0].tensor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const RandomKey key = mask_key(args.seed, *args.name, args.step);
    at::Tensor mask = at::empty(args.inputs[0].sizes(), at::kDouble);
    double* factors = mask.data_ptr<double>();
    for (int64_t i = 0; i < mask.numel(); ++i) factors[i] = factor(key, i);
    return args.inputs[0] * mask.to(args.inputs[0].scalar_type());
  }

 private:
  static RandomKey mask_key(uint64_t seed, const std::string& name, int64_t step) {
    return RandomKey(seed).with(name).with(static_cast<uint64_t>(step));
  }

  double factor(const RandomKey& key, int64_t global_index) const {
    const bool kept = key.uniform(static_cast<uint64_t>(global_index)) >= probability_;
    return static_cast<double>(kept) * scale_;  // no branch: it would be mispredicted
  }

  void apply_mask(const KernelArgs& args, const at::Tensor& from, const at::Tensor& to) const {
    const Box& box = args.out_box;
    const Shape global_strides = row_major_strides(args.types->output.shape());
    const RandomKey key = mask_key(args.seed, *args.name, args.step);
    int64_t first_index = 0;
    for (int axis = 0; axis < box.num_axes(); ++axis)
      first_index += box[axis].begin * global_strides[axis];
    AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "dropout", [&] {
      const scalar_t* source = from.data_ptr<scalar_t>();
      scalar_t* target = to.data_ptr<scalar_t>();
      const int64_t row_size = from.sizes().back();
      const int64_t source_stride = from.strides().back(), target_stride = to.strides().back();
      parallel_rows(from.sizes(), [&](int64_t, const RowIndex& row) {
        const scalar_t* x = source + row_offset(row, from.strides());
        scalar_t* y = target + row_offset(row, to.strides());
        const int64_t row_index = first_index + row_offset(row, global_strides);
        for (int64_t i = 0; i < row_size; ++i)
          y[i * target_stride] =
              x[i * source_stride] * static_cast<scalar_t>(factor(key, row_index + i));
      });
    });
  }

  static Shape row_major_strides(const Shape& shape) {
    Shape strides(shape.size(), 1);
    for (size_t axis = shape.size() - 1; axis > 0; --axis)
      strides[axis - 1] = strides[axis] * shape[axis];
    return strides;
  }

  double probability_;
  double scale_;
};

}  // namespace

ValueId dropout(Graph& graph, ValueId x, const std::string& name, const DropoutOptions& options) {
  return graph.add_node(name, std::make_shared<Dropout>(options), {x});
}

}  // namespace tessera

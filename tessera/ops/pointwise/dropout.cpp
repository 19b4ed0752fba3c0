#include "tessera/ops/pointwise/dropout.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/graph/script.h"
#include "tessera/kernels/dropout.h"

namespace tessera {
namespace {

/// What SELU tends to for very negative numbers, without its sign.
constexpr double kSeluLimit = 1.7580993408473766;

using DropUnit = DropoutOptions::Unit;
using DropForm = DropoutOptions::Form;

Fate fate_of_kept(const DropoutOptions& options) {
  const double p = options.probability;
  if (p >= 1) return {};
  if (options.form == DropForm::kZeros) return {options.scale == 0 ? 1 / (1 - p) : options.scale};
  const double factor = 1 / std::sqrt((kSeluLimit * kSeluLimit * p + 1) * (1 - p));
  return {factor, kSeluLimit * factor * p};
}

/// Without anything kept, alpha dropout gives zeros, as in PyTorch.
Fate fate_of_dropped(const DropoutOptions& options) {
  if (options.form == DropForm::kZeros || options.probability >= 1) return {};
  const Fate kept = fate_of_kept(options);
  return {0, kept.offset - kSeluLimit * kept.factor};
}

class Dropout : public Op {
 public:
  explicit Dropout(const DropoutOptions& options)
      : options_(options), kept_(fate_of_kept(options)), dropped_(fate_of_dropped(options)) {}

  std::string kind() const override { return "dropout"; }
  std::string settings() const override {
    constexpr const char* kUnits[] = {"", ", whole channels", ", whole samples", ", whole batches"};
    std::string text =
        fmt::format("p {:.6g}{}", options_.probability, kUnits[static_cast<int>(options_.unit)]);
    if (options_.form == DropForm::kAlpha) text += ", alpha";
    return options_.scale == 0 ? text : fmt::format("{}, scale {:.6g}", text, options_.scale);
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    if (!(options_.probability >= 0 && options_.probability <= 1))
      throw_error<InvalidInput>("probability {} must be in [0, 1]", options_.probability);
    if (!std::isfinite(options_.scale))
      throw_error<InvalidInput>("scale {} must be a finite number", options_.scale);
    if (inputs[0].element != Element::kReal)
      throw_error<InvalidInput>("the input holds labels; give real numbers");
    return inputs[0];
  }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool cheap_to_recompute() const override { return true; }

  void forward(KernelArgs& args) const override {
    apply_mask(args, args.inputs[0].view(args.out_box), args.output.view(args.out_box), kept_,
               dropped_);
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.grad_inputs[0].tensor.defined())
      apply_mask(args, args.grad_output.tensor, args.grad_inputs[0].tensor, {kept_.factor},
                 {dropped_.factor});
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    const RandomKey key = random_key(args.seed, *args.name, args.step);
    Shape shape = x.sizes().vec();
    std::fill(shape.begin() + num_drawn_axes(x.dim()), shape.end(), 1);
    const at::Tensor factor = at::empty(shape, at::kDouble), offset = at::empty(shape, at::kDouble);
    const at::Tensor flat_factor = factor.view({-1}), flat_offset = offset.view({-1});
    auto factors = flat_factor.accessor<double, 1>();
    auto offsets = flat_offset.accessor<double, 1>();
    for (int64_t i = 0; i < factor.numel(); ++i) {
      const Fate& fate =
          key.uniform(static_cast<uint64_t>(i)) >= options_.probability ? kept_ : dropped_;
      factors[i] = fate.factor;
      offsets[i] = fate.offset;
    }
    const at::Tensor scaled = x * factor.to(x.scalar_type());
    return options_.form == DropForm::kZeros ? scaled : scaled + offset.to(x.scalar_type());
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    if (options_.unit != DropUnit::kElement || options_.form != DropForm::kZeros ||
        options_.scale != 0)
      return std::nullopt;
    return script_call("torch.dropout",
                       {args.inputs[0], script_real(options_.probability), args.training()});
  }

 private:
  /// Along the first axes every position has a draw of its own.
  int64_t num_drawn_axes(int64_t num_axes) const {
    constexpr int64_t kDrawn[] = {5, 2, 1, 0};
    return std::min(num_axes, kDrawn[static_cast<int>(options_.unit)]);
  }

  /// The index of an element's draw is the sum of its positions times these.
  Shape draw_strides(const Shape& shape) const {
    Shape strides(shape.size(), 0);
    int64_t stride = 1;
    for (int64_t axis = num_drawn_axes(std::ssize(shape)) - 1; axis >= 0; --axis) {
      strides[axis] = stride;
      stride *= shape[axis];
    }
    return strides;
  }

  void apply_mask(const KernelArgs& args, const at::Tensor& from, const at::Tensor& to,
                  const Fate& kept, const Fate& dropped) const {
    const Box& box = args.out_box;
    DropoutMask mask{random_key(args.seed, *args.name, args.step), args.key, options_.probability,
                     0, draw_strides(args.types->output.shape())};
    for (int axis = 0; axis < box.num_axes(); ++axis)
      mask.first_index += box[axis].begin * mask.strides[axis];
    apply_dropout(mask, kept, dropped, from, to);
  }

  DropoutOptions options_;
  Fate kept_;
  Fate dropped_;
};

}  // namespace

ValueId dropout(Graph& graph, ValueId x, const std::string& name, const DropoutOptions& options) {
  return graph.add_node(name, std::make_shared<Dropout>(options), {x});
}

}  // namespace tessera

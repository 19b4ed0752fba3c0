#include "tessera/ops/pointwise/pointwise.h"

#include <cmath>
#include <memory>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/kernels/dense_tiles.h"

namespace tessera {
namespace {

using F = PointwiseFunction;
using Options = PointwiseOptions;
using In = const at::Tensor&;
using Out = at::Tensor&;

/// What backward reads besides the gradient of the output.
enum class Keeps { kNothing, kInput, kOutput };

/// Whether ATen's scalar and vector codes give the same bits, so that it may have any views, or not
/// (see dense_tiles.h).
enum class Runs { kOnViews, kInTiles };

struct Entry {
  F function;
  const char* kind;
  Runs runs;
  Keeps keeps;
  const char* a;  // its name; null: not used
  const char* b;
  int flops;  // of one element; a transcendental function counts as 8
  void (*forward)(In x, const Options& options, Out y);
  void (*gradient)(In kept, In dy, const Options& options, Out dx);
  at::Tensor (*reference)(In x, const Options& options);
};

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

at::Tensor scalar(double value, In like) { return at::scalar_tensor(value, like.options()); }

void power_gradient(In x, In dy, const Options& o, Out dx) {
  if (o.a == 0)
    dx.zero_();  // also at 0, where the formula has 0 / 0
  else
    at::pow_out(dx, x, o.a - 1).mul_(o.a).mul_(dy);
}

/// Nothing passes where x is NaN, as in PyTorch.
void clamp_gradient(In x, In dy, const Options& o, Out dx) {
  const at::Tensor inside = x.ge(o.a).logical_and_(x.le(o.b));
  dx.copy_(dy).masked_fill_(inside.logical_not_(), 0);
}

/// clamp(x + 3, 0, 6) / 6, as PyTorch has it on CPUs. Its kernels for GPUs multiply by a sixth that
/// is rounded to float32; in the gradient all of them do.
at::Tensor open_gate(In x, Out y) { return y.copy_(x).add_(3).clamp_(0, 6).div_(6); }

const Entry kEntries[] = {
    {F::kLeakyRelu, "leaky_relu", Runs::kOnViews, Keeps::kInput, "slope", nullptr, 1,
     [](In x, const Options& o, Out y) { at::leaky_relu_out(y, x, o.a); },
     [](In x, In dy, const Options& o, Out dx) {
       at::leaky_relu_backward_out(dx, dy, x, o.a, false);
     },
     [](In x, const Options& o) { return at::leaky_relu(x, o.a); }},
    {F::kElu, "elu", Runs::kInTiles, Keeps::kInput, "alpha", nullptr, 10,
     [](In x, const Options& o, Out y) { at::elu_out(y, x, o.a); },
     [](In x, In dy, const Options& o, Out dx) {
       at::elu_backward_out(dx, dy, o.a, 1, 1, false, x);
     },
     [](In x, const Options& o) { return at::elu(x, o.a); }},
    // Autograd's formula for at::celu rounds alpha to float32; this is at::celu without that.
    {F::kCelu, "celu", Runs::kInTiles, Keeps::kInput, "alpha", nullptr, 11,
     [](In x, const Options& o, Out y) { at::elu_out(y, x, o.a, 1, 1 / o.a); },
     [](In x, In dy, const Options& o, Out dx) {
       at::elu_backward_out(dx, dy, o.a, 1, 1 / o.a, false, x);
     },
     [](In x, const Options& o) { return at::elu(x, o.a, 1, 1 / o.a); }},
    {F::kSelu, "selu", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 11,
     [](In x, const Options&, Out y) { at::elu_out(y, x, kSeluAlpha, kSeluScale); },
     [](In x, In dy, const Options&, Out dx) {
       at::elu_backward_out(dx, dy, kSeluAlpha, kSeluScale, 1, false, x);
     },
     [](In x, const Options&) { return at::selu(x); }},
    {F::kGelu, "gelu", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 12,
     [](In x, const Options&, Out y) { at::gelu_out(y, x); },
     [](In x, In dy, const Options&, Out dx) { at::gelu_backward_out(dx, dy, x); },
     [](In x, const Options&) { return at::gelu(x); }},
    {F::kGeluTanh, "gelu_tanh", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 15,
     [](In x, const Options&, Out y) { at::gelu_out(y, x, "tanh"); },
     [](In x, In dy, const Options&, Out dx) { at::gelu_backward_out(dx, dy, x, "tanh"); },
     [](In x, const Options&) { return at::gelu(x, "tanh"); }},
    {F::kSilu, "silu", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 10,
     [](In x, const Options&, Out y) { at::silu_out(y, x); },
     [](In x, In dy, const Options&, Out dx) { at::silu_backward_out(dx, dy, x); },
     [](In x, const Options&) { return at::silu(x); }},
    {F::kMish, "mish", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 25,
     [](In x, const Options&, Out y) { at::mish_out(y, x); },
     [](In x, In dy, const Options&, Out dx) { dx.copy_(at::mish_backward(dy, x)); },
     [](In x, const Options&) { return at::mish(x); }},
    {F::kSigmoid, "sigmoid", Runs::kInTiles, Keeps::kOutput, nullptr, nullptr, 10,
     [](In x, const Options&, Out y) { at::sigmoid_out(y, x); },
     [](In y, In dy, const Options&, Out dx) { at::sigmoid_backward_out(dx, dy, y); },
     [](In x, const Options&) { return at::sigmoid(x); }},
    {F::kLogSigmoid, "log_sigmoid", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 18,
     [](In x, const Options&, Out y) { at::log_sigmoid_out(y, x); },
     [](In x, In dy, const Options&, Out dx) { at::neg_out(dx, x).sigmoid_().mul_(dy); },
     [](In x, const Options&) { return at::log_sigmoid(x); }},
    {F::kTanh, "tanh", Runs::kInTiles, Keeps::kOutput, nullptr, nullptr, 8,
     [](In x, const Options&, Out y) { at::tanh_out(y, x); },
     [](In y, In dy, const Options&, Out dx) { at::tanh_backward_out(dx, dy, y); },
     [](In x, const Options&) { return at::tanh(x); }},
    {F::kHardswish, "hardswish", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 3,
     [](In x, const Options&, Out y) { open_gate(x, y).mul_(x); },
     [](In x, In dy, const Options&, Out dx) { dx.copy_(at::hardswish_backward(dy, x)); },
     [](In x, const Options&) { return at::hardswish(x); }},
    {F::kHardsigmoid, "hardsigmoid", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 2,
     [](In x, const Options&, Out y) { open_gate(x, y); },
     [](In x, In dy, const Options&, Out dx) { at::hardsigmoid_backward_out(dx, dy, x); },
     [](In x, const Options&) { return at::hardsigmoid(x); }},
    {F::kHardtanh, "hardtanh", Runs::kOnViews, Keeps::kInput, "low", "high", 2,
     [](In x, const Options& o, Out y) { at::clamp_out(y, x, o.a, o.b); },
     [](In x, In dy, const Options& o, Out dx) { at::hardtanh_backward_out(dx, dy, x, o.a, o.b); },
     [](In x, const Options& o) { return at::hardtanh(x, o.a, o.b); }},
    {F::kSoftplus, "softplus", Runs::kInTiles, Keeps::kInput, "beta", "threshold", 18,
     [](In x, const Options& o, Out y) { at::softplus_out(y, x, o.a, o.b); },
     [](In x, In dy, const Options& o, Out dx) { at::softplus_backward_out(dx, dy, x, o.a, o.b); },
     [](In x, const Options& o) { return at::softplus(x, o.a, o.b); }},
    {F::kSoftsign, "softsign", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 2,
     [](In x, const Options&, Out y) { at::div_out(y, x, at::abs_out(y, x).add_(1)); },
     [](In x, In dy, const Options&, Out dx) {
       at::div_out(dx, dy, at::abs_out(dx, x).add_(1).square_());
     },
     [](In x, const Options&) { return x / (x.abs() + 1); }},
    {F::kExp, "exp", Runs::kInTiles, Keeps::kOutput, nullptr, nullptr, 8,
     [](In x, const Options&, Out y) { at::exp_out(y, x); },
     [](In y, In dy, const Options&, Out dx) { at::mul_out(dx, dy, y); },
     [](In x, const Options&) { return at::exp(x); }},
    {F::kLog, "log", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 8,
     [](In x, const Options&, Out y) { at::log_out(y, x); },
     [](In x, In dy, const Options&, Out dx) { at::div_out(dx, dy, x); },
     [](In x, const Options&) { return at::log(x); }},
    {F::kLog1p, "log1p", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 8,
     [](In x, const Options&, Out y) { at::log1p_out(y, x); },
     [](In x, In dy, const Options&, Out dx) { at::div_out(dx, dy, dx.copy_(x).add_(1)); },
     [](In x, const Options&) { return at::log1p(x); }},
    {F::kSqrt, "sqrt", Runs::kInTiles, Keeps::kOutput, nullptr, nullptr, 1,
     [](In x, const Options&, Out y) { at::sqrt_out(y, x); },
     [](In y, In dy, const Options&, Out dx) { at::div_out(dx, dy, y).mul_(0.5); },
     [](In x, const Options&) { return at::sqrt(x); }},
    {F::kRsqrt, "rsqrt", Runs::kInTiles, Keeps::kOutput, nullptr, nullptr, 2,
     [](In x, const Options&, Out y) { at::rsqrt_out(y, x); },
     [](In y, In dy, const Options&, Out dx) { at::mul_out(dx, y, y).mul_(y).mul_(-0.5).mul_(dy); },
     [](In x, const Options&) { return at::rsqrt(x); }},
    {F::kReciprocal, "reciprocal", Runs::kInTiles, Keeps::kOutput, nullptr, nullptr, 1,
     [](In x, const Options&, Out y) { at::reciprocal_out(y, x); },
     [](In y, In dy, const Options&, Out dx) { at::mul_out(dx, y, y).neg_().mul_(dy); },
     [](In x, const Options&) { return at::reciprocal(x); }},
    {F::kAbs, "abs", Runs::kOnViews, Keeps::kInput, nullptr, nullptr, 1,
     [](In x, const Options&, Out y) { at::abs_out(y, x); },
     [](In x, In dy, const Options&, Out dx) { at::sgn_out(dx, x).mul_(dy); },
     [](In x, const Options&) { return at::abs(x); }},
    {F::kNegate, "neg", Runs::kOnViews, Keeps::kNothing, nullptr, nullptr, 1,
     [](In x, const Options&, Out y) { at::neg_out(y, x); },
     [](In, In dy, const Options&, Out dx) { at::neg_out(dx, dy); },
     [](In x, const Options&) { return at::neg(x); }},
    {F::kSquare, "square", Runs::kOnViews, Keeps::kInput, nullptr, nullptr, 1,
     [](In x, const Options&, Out y) { at::mul_out(y, x, x); },
     [](In x, In dy, const Options&, Out dx) { at::mul_out(dx, x, dy).mul_(2); },
     [](In x, const Options&) { return at::square(x); }},
    {F::kPower, "pow", Runs::kInTiles, Keeps::kInput, "exponent", nullptr, 16,
     [](In x, const Options& o, Out y) { at::pow_out(y, x, o.a); }, power_gradient,
     [](In x, const Options& o) { return at::pow(x, o.a); }},
    {F::kSin, "sin", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 8,
     [](In x, const Options&, Out y) { at::sin_out(y, x); },
     [](In x, In dy, const Options&, Out dx) { at::cos_out(dx, x).mul_(dy); },
     [](In x, const Options&) { return at::sin(x); }},
    {F::kCos, "cos", Runs::kInTiles, Keeps::kInput, nullptr, nullptr, 8,
     [](In x, const Options&, Out y) { at::cos_out(y, x); },
     [](In x, In dy, const Options&, Out dx) { at::sin_out(dx, x).neg_().mul_(dy); },
     [](In x, const Options&) { return at::cos(x); }},
    {F::kAffine, "affine", Runs::kOnViews, Keeps::kNothing, "factor", "offset", 2,
     [](In x, const Options& o, Out y) { at::mul_out(y, x, scalar(o.a, x)).add_(o.b); },
     [](In, In dy, const Options& o, Out dx) { at::mul_out(dx, dy, scalar(o.a, dy)); },
     [](In x, const Options& o) { return x * o.a + o.b; }},
    {F::kClamp, "clamp", Runs::kInTiles, Keeps::kInput, "low", "high", 2,
     [](In x, const Options& o, Out y) { at::clamp_out(y, x, o.a, o.b); }, clamp_gradient,
     [](In x, const Options& o) { return at::clamp(x, o.a, o.b); }},
    {F::kNormRoot, "norm_root", Runs::kInTiles, Keeps::kOutput, nullptr, nullptr, 1,
     [](In x, const Options&, Out y) { at::sqrt_out(y, x); },
     [](In y, In dy, const Options&, Out dx) {
       at::div_out(dx, dy, y).mul_(0.5).masked_fill_(y == 0, 0);
     },
     [](In x, const Options&) {
       const at::Tensor zero = x == 0;
       return at::sqrt(x.masked_fill(zero, 1)).masked_fill(zero, 0);
     }},
};

const Entry& entry_of(F function) {
  for (const Entry& entry : kEntries)
    if (entry.function == function) return entry;
  throw_error<InternalError>("pointwise function {} is not in the table",
                             static_cast<int>(function));
}

class Pointwise final : public Op {
 public:
  explicit Pointwise(const Options& options)
      : entry_(entry_of(options.function)), options_(options) {}

  const Options& options() const { return options_; }
  std::string kind() const override { return entry_.kind; }
  std::string settings() const override {
    if (!entry_.a) return {};
    const std::string a = fmt::format("{} {}", entry_.a, options_.a);
    return entry_.b ? fmt::format("{}, {} {}", a, entry_.b, options_.b) : a;
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    if (inputs[0].element != Element::kReal)
      throw_error<InvalidInput>("the input holds labels; give real numbers");
    check_options();
    return inputs[0];
  }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool keeps_input(int) const override { return entry_.keeps == Keeps::kInput; }
  bool keeps_output() const override { return entry_.keeps == Keeps::kOutput; }
  bool cheap_to_recompute() const override { return true; }
  double flops(const Box& out, const NodeTypes&) const override {
    return entry_.flops * static_cast<double>(out.volume());
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    evaluate({args.inputs[0].view(args.out_box)}, args.output.view(args.out_box),
             [&](const Tiles& in, at::Tensor& out) { entry_.forward(in[0], options_, out); });
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const at::Tensor grad_output = args.grad_output.view(args.out_box);
    const at::Tensor kept = keeps_output()   ? args.output.view(args.out_box)
                            : keeps_input(0) ? args.inputs[0].view(args.out_box)
                                             : grad_output;
    evaluate(
        {kept, grad_output}, args.grad_inputs[0].view(args.out_box),
        [&](const Tiles& in, at::Tensor& out) { entry_.gradient(in[0], in[1], options_, out); });
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return entry_.reference(args.inputs[0], options_);
  }

  /// Of the zoo's activations.
  std::optional<std::string> script(const ScriptArgs& args) const override {
    if (options_.function == F::kSigmoid) return script_call("torch.sigmoid", args.inputs);
    if (options_.function == F::kHardtanh && std::isfinite(options_.a) && std::isfinite(options_.b))
      return script_call("torch.hardtanh",
                         {args.inputs[0], script_real(options_.a), script_real(options_.b)});
    return std::nullopt;
  }

 private:
  void evaluate(const std::vector<at::Tensor>& sources, at::Tensor target,
                const TileKernel& kernel) const {
    if (entry_.runs == Runs::kOnViews)
      kernel(sources, target);
    else
      in_dense_tiles(sources, target, kernel);
  }

  void check_options() const {
    const auto [function, a, b] = options_;
    if (function == F::kHardtanh || function == F::kClamp) {
      if (!(a <= b)) throw_error<InvalidInput>("low {} must be at most high {}", a, b);
      return;
    }
    if (entry_.a && !std::isfinite(a))
      throw_error<InvalidInput>("{} {} must be finite", entry_.a, a);
    if ((function == F::kCelu || function == F::kSoftplus) && a == 0)
      throw_error<InvalidInput>("{} must not be 0; the function divides by it", entry_.a);
    if (entry_.b && (function == F::kSoftplus ? std::isnan(b) : !std::isfinite(b)))
      throw_error<InvalidInput>("{} {} must be a finite number", entry_.b, b);
  }

  const Entry& entry_;
  Options options_;
};

}  // namespace

ValueId pointwise(Graph& graph, ValueId x, const std::string& name,
                  const PointwiseOptions& options) {
  return graph.add_node(name, std::make_shared<Pointwise>(options), {x});
}

std::optional<PointwiseOptions> pointwise_options(const Op& op) {
  const auto* pointwise = dynamic_cast<const Pointwise*>(&op);
  return pointwise ? std::optional(pointwise->options()) : std::nullopt;
}

const std::vector<PointwiseDescription>& pointwise_functions() {
  static const std::vector<PointwiseDescription> all = [] {
    std::vector<PointwiseDescription> list;
    for (const Entry& entry : kEntries)
      list.push_back({entry.function, entry.kind, entry.a ? entry.a : "", entry.b ? entry.b : ""});
    return list;
  }();
  return all;
}

std::optional<PointwiseFunction> pointwise_function_called(const std::string& kind) {
  for (const Entry& entry : kEntries)
    if (kind == entry.kind) return entry.function;
  return std::nullopt;
}

}  // namespace tessera

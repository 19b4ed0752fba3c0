#include "tessera/ops/loss/kernel_mean.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/ops/loss/feature_loss.h"

namespace tessera {
namespace {

class KernelMean final : public FeatureLoss {
 public:
  explicit KernelMean(const KernelMeanOptions& options)
      : FeatureLoss(options.weight), bandwidths_(options.bandwidths) {}

  std::string kind() const override { return "kernel_mean"; }
  std::string settings() const override {
    return with_weight(fmt::format("{} bandwidths", bandwidths_.size()));
  }
  /// A sample meets all others, so the batch cannot be cut into micro-batches.
  int64_t batch_parts() const override { return 1; }

  Box needed(int input, const Box& out, const NodeTypes& types) const override {
    Box box = Box::whole(types.inputs[input].shape());
    if (input == 0 || out.empty()) box[0] = out[0];
    return box;
  }
  double flops(const Box& out, const NodeTypes& types) const override {
    return static_cast<double>(out.volume() * types.inputs[1].batch()) *
           static_cast<double>(3 * types.inputs[0].channels() + std::ssize(bandwidths_) * 10);
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor a = rows(args, 0), b = rows(args, 1);
    for (int64_t i = 0; i < a.size(0); ++i)
      args.loss.add_(kernel((b - a[i]).square_().sum(1)).sum() * factor(args));
  }

  /// dk/da = sum_b exp(-|a - b|^2 / (2 b)) (b - a) / b, and dk/db the opposite.
  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor &of_a = args.grad_inputs[0].tensor, &of_b = args.grad_inputs[1].tensor;
    const at::Tensor a = rows(args, 0), b = rows(args, 1), all_b = at::zeros_like(b);
    for (int64_t i = 0; i < a.size(0); ++i) {
      const at::Tensor apart = b - a[i];
      const at::Tensor pull = kernel_slope(apart.square().sum(1)) * factor(args);
      const at::Tensor of_pairs = apart * pull.unsqueeze(1);
      if (of_a.defined()) of_a.select(0, i).copy_(of_pairs.sum(0));
      all_b.sub_(of_pairs);
    }
    if (of_b.defined()) of_b.copy_(all_b);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor apart = args.inputs[0].unsqueeze(1) - args.inputs[1].unsqueeze(0);
    const at::Tensor squares = (apart * apart).sum(2);
    at::Tensor sum = at::zeros_like(squares);
    for (double bandwidth : bandwidths_) sum = sum + at::exp(squares / (-2 * bandwidth));
    return weight_at(args.step) * sum.mean();
  }

 protected:
  void check_inputs(std::span<const ValueType> inputs) const override {
    for (const ValueType& input : inputs)
      if (input.num_axes() != 2 || input.batch() < 1 || input.channels() != inputs[0].channels())
        throw_error<InvalidInput>(
            "the inputs are {} and {}; give batch x features, as many features of both (pool or "
            "flatten images)",
            to_string(inputs[0]), to_string(inputs[1]));
    for (double bandwidth : bandwidths_)
      if (!(bandwidth > 0 && std::isfinite(bandwidth)))
        throw_error<InvalidInput>("bandwidth {} must be above 0 and finite", bandwidth);
    if (bandwidths_.empty()) throw_error<InvalidInput>("there is no bandwidth; give one or more");
  }

 private:
  /// The rows that a piece needs, in float64.
  at::Tensor rows(const KernelArgs& args, int input) const {
    return args.inputs[input].view(needed(input, args.out_box, *args.types)).to(at::kDouble);
  }
  /// k and -2 dk/d(square) of squared distances.
  at::Tensor kernel(const at::Tensor& squares) const {
    at::Tensor sum = at::zeros_like(squares);
    for (double bandwidth : bandwidths_) sum.add_(at::exp(squares / (-2 * bandwidth)));
    return sum;
  }
  at::Tensor kernel_slope(const at::Tensor& squares) const {
    at::Tensor sum = at::zeros_like(squares);
    for (double bandwidth : bandwidths_)
      sum.add_(at::exp(squares / (-2 * bandwidth)), 1 / bandwidth);
    return sum;
  }
  double factor(const KernelArgs& args) const {
    const int64_t pairs = args.types->inputs[0].batch() * args.types->inputs[1].batch();
    return weight_at(args.step) / static_cast<double>(pairs);
  }

  std::vector<double> bandwidths_;
};

}  // namespace

ValueId kernel_mean(Graph& graph, ValueId a, ValueId b, const std::string& name,
                    const KernelMeanOptions& options) {
  return graph.add_node(name, std::make_shared<KernelMean>(options), {a, b});
}

void mmd_loss(Graph& graph, ValueId a, ValueId b, const std::string& name,
              const KernelMeanOptions& options) {
  KernelMeanOptions between = options;
  between.weight = options.weight * -2;
  kernel_mean(graph, a, a, name + ".first", options);
  kernel_mean(graph, b, b, name + ".second", options);
  kernel_mean(graph, a, b, name + ".between", between);
}

}  // namespace tessera

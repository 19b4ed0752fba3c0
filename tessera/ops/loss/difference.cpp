#include "tessera/ops/loss/difference.h"

#include "tessera/base/error.h"
#include "tessera/ops/loss/feature_loss.h"

namespace tessera {
namespace {

/// Of A^T B, 8 bytes each: 128 MiB.
constexpr int64_t kMostProducts = 1 << 24;

/// The channels x pixels of one sample of a piece, in float64.
at::Tensor sample_columns(const at::Tensor& piece, int64_t sample) {
  return piece.select(0, sample).reshape({piece.size(1), -1}).to(at::kDouble);
}

/// Batch x channels x space as rows x channels.
at::Tensor all_rows(const at::Tensor& x) {
  const int64_t channels = x.size(1);
  return x.reshape({x.size(0), channels, -1}).transpose(1, 2).reshape({-1, channels});
}

class DifferenceLoss final : public FeatureLoss {
 public:
  explicit DifferenceLoss(const DifferenceOptions& options) : FeatureLoss(options.weight) {}

  std::string kind() const override { return "difference"; }
  std::string settings() const override { return with_weight(""); }

  Statistics forward_statistics(const NodeTypes& types) const override {
    const int64_t products = types.inputs[0].channels() * types.inputs[1].channels();
    return {products, products};
  }
  double flops(const Box& out, const NodeTypes& types) const override {
    return 2.0 * static_cast<double>(out.volume() * types.inputs[0].channels() *
                                     types.inputs[1].channels());
  }

  void piece_statistics(KernelArgs& args) const override {
    args.piece_statistics.zero_();
    if (args.out_box.empty()) return;
    at::Tensor products = as_matrix(args.piece_statistics, args);
    const at::Tensor a = rows_of(args, 0), b = rows_of(args, 1);
    for (int64_t n = 0; n < a.size(0); ++n)
      products.addmm_(sample_columns(a, n), sample_columns(b, n).t());
  }

  void forward(KernelArgs& args) const override {
    const at::Tensor norm = args.merged_statistics.dot(args.merged_statistics);
    args.loss.add_(norm * (weight_at(args.step) * share_of_piece(args)));
  }

  /// By a row a of A: 2 (A^T B) b; by b: 2 (A^T B)^T a.
  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor products =
        as_matrix(args.merged_statistics, args) * (2 * weight_at(args.step));
    store(args, 0, products);
    store(args, 1, products.t());
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor products = at::mm(all_rows(args.inputs[0]).t(), all_rows(args.inputs[1]));
    return weight_at(args.step) * (products * products).sum();
  }

 protected:
  void check_inputs(std::span<const ValueType> inputs) const override {
    const ValueType &a = inputs[0], &b = inputs[1];
    Shape of_a = a.shape(), of_b = b.shape();
    of_a[1] = of_b[1] = 0;
    if (of_a != of_b)
      throw_error<InvalidInput>("the inputs are {} and {}; give codes of one batch and space",
                                to_string(a), to_string(b));
    if (a.channels() > kMostProducts / b.channels())
      throw_error<InvalidInput>("{} x {} channels have more than {} products; use fewer channels",
                                a.channels(), b.channels(), kMostProducts);
  }

 private:
  static at::Tensor as_matrix(const at::Tensor& products, const KernelArgs& args) {
    return products.view({args.types->inputs[0].channels(), args.types->inputs[1].channels()});
  }
  at::Tensor rows_of(const KernelArgs& args, int input) const {
    return args.inputs[input].view(needed(input, args.out_box, *args.types));
  }
  void store(const KernelArgs& args, int input, const at::Tensor& products) const {
    const at::Tensor& gradient = args.grad_inputs[input].tensor;
    if (!gradient.defined()) return;
    const at::Tensor other = rows_of(args, 1 - input);
    for (int64_t n = 0; n < other.size(0); ++n) {
      at::Tensor sample = gradient.select(0, n);
      sample.copy_(products.mm(sample_columns(other, n)).view(sample.sizes()));
    }
  }
};

}  // namespace

ValueId difference_loss(Graph& graph, ValueId a, ValueId b, const std::string& name,
                        const DifferenceOptions& options) {
  return graph.add_node(name, std::make_shared<DifferenceLoss>(options), {a, b});
}

}  // namespace tessera

#include "tessera/ops/norm/batch_centring.h"

#include "tessera/base/error.h"
#include "tessera/geometry/split.h"
#include "tessera/ops/norm/norm.h"

namespace tessera {
namespace {

class BatchCentring final : public Op, public HasBatchParts {
 public:
  explicit BatchCentring(int64_t batch_parts) : batch_parts_(batch_parts) {}

  std::string kind() const override { return "batch_centring"; }
  std::string settings() const override {
    return batch_parts_ > 1 ? fmt::format("{} micro-batches", batch_parts_) : "";
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    if (input.element != Element::kReal || input.num_axes() < 2 ||
        input.axes[1].kind != AxisKind::kChannel)
      throw_error<InvalidInput>("input {} must be real, with batch and channels first",
                                to_string(input));
    return input;
  }
  std::shared_ptr<const Op> by_parts(int64_t parts) const override {
    return std::make_shared<BatchCentring>(parts);
  }

  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool cheap_to_recompute() const override { return true; }
  int64_t batch_parts() const override { return batch_parts_; }
  Statistics forward_statistics(const NodeTypes& types) const override {
    return {kNumbersPerCell * types.output.channels(), types.output.channels()};
  }
  int64_t backward_statistics(const NodeTypes& types) const override {
    return types.output.channels();
  }
  double flops(const Box& out, const NodeTypes&) const override {
    return 2.0 * static_cast<double>(out.volume());
  }

  void piece_statistics(KernelArgs& args) const override {
    args.piece_statistics.zero_();
    if (args.out_box.empty()) return;
    const at::Tensor x = args.inputs[0].view(args.out_box);
    plane_moments(x.dim() > 2 ? x : x.unsqueeze(2),
                  cells_of_row(args.piece_statistics).unsqueeze(0));
  }

  void combine_statistics(const std::vector<at::Tensor>& rows,
                          const at::Tensor& combined) const override {
    combine_moments(rows, combined);
  }

  void merge_statistics(MergeArgs& args) const override {
    args.merged.copy_(means_in(cells_of_row(args.row)));
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor x = args.inputs[0].view(args.out_box);
    at::Tensor y = args.output.view(args.out_box);
    at::sub_out(y, x, per_channel(args.merged_statistics, x));
  }

  void piece_grad_statistics(KernelArgs& args) const override {
    args.piece_grad_statistics.zero_();
    if (args.out_box.empty()) return;
    const at::Tensor dy = args.grad_output.view(args.out_box);
    args.piece_grad_statistics.copy_(at::sum(dy, axes_but_channels(dy), false, at::kDouble));
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const at::Tensor dy = args.grad_output.view(args.out_box);
    at::Tensor dx = args.grad_inputs[0].view(args.out_box);
    at::sub_out(dx, dy, per_channel(args.merged_grad_statistics / count_per_channel(args), dy));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    std::vector<at::Tensor> parts;
    for (int64_t part = 0; part < batch_parts_; ++part) {
      const Range samples = split(args.inputs[0].size(0), batch_parts_, part);
      const at::Tensor x = args.inputs[0].narrow(0, samples.begin, samples.size());
      parts.push_back(x - x.mean(axes_but_channels(x), /*keepdim=*/true));
    }
    return at::cat(parts);
  }

 private:
  static std::vector<int64_t> axes_but_channels(const at::Tensor& x) {
    std::vector<int64_t> axes{0};
    for (int64_t axis = 2; axis < x.dim(); ++axis) axes.push_back(axis);
    return axes;
  }

  static at::Tensor per_channel(const at::Tensor& numbers, const at::Tensor& like) {
    std::vector<int64_t> shape(like.dim(), 1);
    shape[1] = numbers.numel();
    return numbers.reshape(shape).to(like.scalar_type());
  }

  /// Elements of a channel in the part of the batch that a piece belongs to.
  double count_per_channel(const KernelArgs& args) const {
    const ValueType& type = args.types->output;
    int64_t count = pixels_per_sample(type);
    for (int64_t part = 0; part < batch_parts_; ++part)
      if (const Range samples = split(type.batch(), batch_parts_, part);
          samples.contains(args.out_box[0].begin))
        count *= samples.size();
    return static_cast<double>(count);
  }

  int64_t batch_parts_;
};

}  // namespace

ValueId batch_centring(Graph& graph, ValueId x, const std::string& name) {
  return graph.add_node(name, std::make_shared<BatchCentring>(1), {x});
}

}  // namespace tessera

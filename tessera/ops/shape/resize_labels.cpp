#include "tessera/ops/shape/resize_labels.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/geometry/window.h"
#include "tessera/kernels/pick_labels.h"

namespace tessera {
namespace {

class ResizeLabels final : public Op {
 public:
  explicit ResizeLabels(const std::vector<int64_t>& size) : size_(size) {}

  std::string kind() const override { return "resize_labels"; }
  std::string settings() const override { return "to " + to_string(size_); }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    ValueType type = inputs[0];
    const int num_spatial = type.num_spatial();
    if (type.element != Element::kIndex || type.first_spatial() != 1 || num_spatial < 1 ||
        num_spatial > 3)
      throw_error<InvalidInput>("input {} must be labels, with batch and 1 to 3 spatial axes",
                                to_string(type));
    if (static_cast<int>(size_.size()) != num_spatial)
      throw_error<InvalidInput>("size {} has {}; give one per spatial axis of {}: {}",
                                to_string(size_), counted(std::ssize(size_), "entry", "entries"),
                                to_string(type), num_spatial);
    for (int i = 0; i < num_spatial; ++i) {
      Axis& axis = type.axes[1 + i];
      if (size_[i] < 1) throw_error<InvalidInput>("size {} must be at least 1", to_string(size_));
      axis.stride = axis.stride * Ratio::of(axis.size, size_[i]);
      axis.size = size_[i];
    }
    return type;
  }

  Box needed(int, const Box& out, const NodeTypes& types) const override {
    Box box = out;
    for (int axis = 1; axis < out.num_axes(); ++axis)
      box[axis] = along(axis, types).needed(out[axis]);
    return box;
  }
  bool differentiable(int) const override { return false; }
  bool cheap_to_recompute() const override { return true; }
  double flops(const Box&, const NodeTypes&) const override { return 0; }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    pick_labels(args.inputs[0].view(needed(0, args.out_box, *args.types)), places(args),
                args.output.view(args.out_box));
  }

  void input_gradient(KernelArgs&) const override {}

  /// As users write it: labels as an image of one channel, which float32 holds up to 2^24.
  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor image = args.inputs[0].to(at::kFloat).unsqueeze(1);
    const at::IntArrayRef size(size_);
    const at::Tensor resized = size_.size() == 1   ? at::upsample_nearest1d(image, size)
                               : size_.size() == 2 ? at::upsample_nearest2d(image, size)
                                                   : at::upsample_nearest3d(image, size);
    return resized.squeeze(1).to(at::kLong);
  }

 private:
  /// For each axis and position in the piece, where its label lies in the needed box.
  std::vector<std::vector<int64_t>> places(const KernelArgs& args) const {
    const Box& out = args.out_box;
    const Box reads = needed(0, out, *args.types);
    std::vector<std::vector<int64_t>> places(out.num_axes());
    for (int axis = 0; axis < out.num_axes(); ++axis)
      for (int64_t o = out[axis].begin; o < out[axis].end; ++o) {
        const int64_t source = axis == 0 ? o : along(axis, *args.types).source(o).first();
        places[axis].push_back(source - reads[axis].begin);
      }
    return places;
  }

  static Interpolation along(int axis, const NodeTypes& types) {
    return {InterpolationMode::kNearest, Corners::kNotAligned, types.inputs[0].axes[axis].size,
            types.output.axes[axis].size, 0};
  }

  std::vector<int64_t> size_;
};

}  // namespace

ValueId resize_labels(Graph& graph, ValueId labels, const std::string& name,
                      const std::vector<int64_t>& size) {
  return graph.add_node(name, std::make_shared<ResizeLabels>(size), {labels});
}

}  // namespace tessera

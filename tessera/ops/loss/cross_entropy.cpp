#include "tessera/ops/loss/cross_entropy.h"

#include <ATen/Dispatch.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/kernels/cpu/tile_softmax.h"
#include "tessera/ops/loss/pixel_loss.h"

namespace tessera {
namespace {

/// A view whose axis 1 is the class, read as one image per class.
template <class T>
struct ClassImages {
  explicit ClassImages(const at::Tensor& tensor)
      : first(tensor.select(1, 0)), data(tensor.data_ptr<T>()), class_stride(tensor.stride(1)) {}

  T* pixel(const RowIndex& row, int64_t column) const {
    return data + row_offset(row, first.strides()) + column * stride();
  }
  int64_t stride() const { return first.strides().back(); }

  at::Tensor first;
  T* data;
  int64_t class_stride;
};

/// Neighbouring pixels of one row. Class k of pixel p is at k * class_stride + p * stride.
template <class T>
struct Tile {
  const T* logits;
  int64_t class_stride;
  int64_t stride;
  const int64_t* labels;
  int64_t label_stride;
  int64_t size;

  double logit(int64_t k, int64_t p) const { return logits[k * class_stride + p * stride]; }
  int64_t label(int64_t p) const { return labels[p * label_stride]; }
};

/// What a pixel counts for: -hard log q_t - soft sum_k w_k log q_k.
struct PixelWeights {
  double hard = 0;
  double soft = 0;
};

class CrossEntropy : public PixelLoss {
 public:
  explicit CrossEntropy(const CrossEntropyOptions& options)
      : PixelLoss(options.weight, options.ignore_index), options_(options) {}

  std::string kind() const override { return "cross_entropy"; }
  std::string settings() const override {
    std::string text;
    if (!options_.class_weights.empty()) text = "class weights " + slashed(options_.class_weights);
    if (options_.label_smoothing > 0)
      text += fmt::format("{}smoothing {}", text.empty() ? "" : ", ", options_.label_smoothing);
    return with_weight(text);
  }

  Statistics forward_statistics(const NodeTypes&) const override { return {1, 1}; }

  bool statistics_read(int input) const override { return input == 1; }
  /// The piece's part of the denominator.
  void piece_statistics(KernelArgs& args) const override {
    args.piece_statistics.fill_(
        sum_over_labels(args, [&](int64_t label) { return class_weight(label); }));
  }

  void forward(KernelArgs& args) const override {
    // Sums of rows, added in their order: the result does not depend on the number of threads.
    std::vector<double> row_sums(num_rows(args.out_box.shape()));
    AT_DISPATCH_FLOATING_TYPES(args.inputs[0].tensor.scalar_type(), "cross_entropy", [&] {
      for_each_tile<scalar_t>(
          args, [&](int64_t row, const RowIndex&, int64_t, const Tile<scalar_t>& tile) {
            row_sums[row] += tile_loss(tile, num_classes(args));
          });
    });
    const double sum = std::accumulate(row_sums.begin(), row_sums.end(), 0.0);
    args.loss.add_(weight() * sum / args.merged_statistics[0].item<double>());
  }

  void input_gradient(KernelArgs& args) const override {
    if (!args.grad_inputs[0].tensor.defined()) return;
    const double denominator = args.merged_statistics[0].item<double>() / weight();
    AT_DISPATCH_FLOATING_TYPES(args.inputs[0].tensor.scalar_type(), "cross_entropy", [&] {
      const ClassImages<scalar_t> gradient(args.grad_inputs[0].tensor);
      for_each_tile<scalar_t>(args, [&](int64_t, const RowIndex& row, int64_t column,
                                        const Tile<scalar_t>& tile) {
        store_gradient(tile, num_classes(args), denominator, gradient, gradient.pixel(row, column));
      });
    });
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& logits = args.inputs[0];
    at::Tensor weights;
    if (!options_.class_weights.empty())
      weights = at::tensor(options_.class_weights, at::kDouble).to(logits.scalar_type());
    return weight() * at::cross_entropy_loss(logits, args.inputs[1], weights, at::Reduction::Mean,
                                             ignore_index(), options_.label_smoothing);
  }

 protected:
  bool takes(Element target) const override { return target == Element::kIndex; }
  int64_t num_labels(int64_t channels) const override { return channels; }

  void check_options(const ValueType& logits) const override {
    const auto num_classes = static_cast<size_t>(logits.channels());
    if (!options_.class_weights.empty() && options_.class_weights.size() != num_classes)
      throw_error<InvalidInput>("{} for {}; give one per class, or none",
                                counted(std::ssize(options_.class_weights), "class weight"),
                                counted(logits.channels(), "class", "classes"));
    if (!(options_.label_smoothing >= 0 && options_.label_smoothing <= 1))
      throw_error<InvalidInput>("label_smoothing {} must be in [0, 1]", options_.label_smoothing);
  }

 private:
  static int64_t num_classes(const KernelArgs& args) { return args.types->inputs[0].channels(); }

  double class_weight(int64_t k) const {
    return options_.class_weights.empty() ? 1.0 : options_.class_weights[k];
  }

  PixelWeights pixel_weights(int64_t label, int64_t num_classes) const {
    return {(1 - options_.label_smoothing) * class_weight(label),
            options_.label_smoothing / static_cast<double>(num_classes)};
  }

  /// Calls body(row number, row index, first column, tile) for all tiles, rows in parallel.
  template <class T, class Body>
  void for_each_tile(const KernelArgs& args, const Body& body) const {
    const ClassImages<T> logits(args.inputs[0].view(needed(0, args.out_box, *args.types)));
    const at::Tensor target = args.inputs[1].view(args.out_box);
    const int64_t* labels = target.data_ptr<int64_t>();
    const int64_t label_stride = target.strides().back(), row_size = target.sizes().back();
    parallel_rows(target.sizes(), [&](int64_t row, const RowIndex& index) {
      const int64_t* row_labels = labels + row_offset(index, target.strides());
      for (int64_t column = 0; column < row_size; column += kMaxTilePixels)
        body(row, index, column,
             Tile<T>{logits.pixel(index, column), logits.class_stride, logits.stride(),
                     row_labels + column * label_stride, label_stride,
                     std::min(kMaxTilePixels, row_size - column)});
    });
  }

  template <class T>
  double tile_loss(const Tile<T>& tile, int64_t num_classes) const {
    const TileSoftmax softmax(tile, num_classes, [](int64_t, int64_t, double) {});
    double loss = 0;
    for (int64_t p = 0; p < tile.size; ++p) {
      if (tile.label(p) == ignore_index()) continue;
      const PixelWeights weights = pixel_weights(tile.label(p), num_classes);
      const double log_sum = std::log(softmax.sum[p]);
      const auto minus_log = [&](int64_t k) {
        return log_sum - (tile.logit(k, p) - softmax.max[p]);
      };
      loss += weights.hard * minus_log(tile.label(p));
      if (weights.soft == 0) continue;
      for (int64_t k = 0; k < num_classes; ++k)
        loss += weights.soft * class_weight(k) * minus_log(k);
    }
    return loss;
  }

  /// `target` holds the exponentials until their sum is known: they are the costly part.
  template <class T>
  void store_gradient(const Tile<T>& tile, int64_t num_classes, double denominator,
                      const ClassImages<T>& gradient, T* target) const {
    const auto at = [&](int64_t k, int64_t p) -> T& {
      return target[k * gradient.class_stride + p * gradient.stride()];
    };
    const TileSoftmax softmax(tile, num_classes, [&](int64_t k, int64_t p, double exponential) {
      at(k, p) = static_cast<T>(exponential);
    });
    double total_weight = 0;
    for (int64_t k = 0; k < num_classes; ++k) total_weight += class_weight(k);
    PixelWeights weights[kMaxTilePixels];
    double factor[kMaxTilePixels] = {};
    for (int64_t p = 0; p < tile.size; ++p) {
      if (tile.label(p) == ignore_index()) continue;  // 0 even where the denominator is 0
      weights[p] = pixel_weights(tile.label(p), num_classes);
      weights[p].hard /= denominator;
      weights[p].soft /= denominator;
      factor[p] = (weights[p].hard + weights[p].soft * total_weight) / softmax.sum[p];
    }
    for (int64_t k = 0; k < num_classes; ++k)
      for (int64_t p = 0; p < tile.size; ++p) {
        const double own = tile.label(p) == k ? weights[p].hard : 0.0;
        at(k, p) = static_cast<T>(factor[p] * at(k, p) - own - weights[p].soft * class_weight(k));
      }
  }

  CrossEntropyOptions options_;
};

}  // namespace

ValueId cross_entropy(Graph& graph, ValueId logits, ValueId target, const std::string& name,
                      const CrossEntropyOptions& options) {
  return graph.add_node(name, std::make_shared<CrossEntropy>(options), {logits, target});
}

}  // namespace tessera

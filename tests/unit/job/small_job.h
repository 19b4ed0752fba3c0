#pragma once
// A network and a data set of one's own, small enough to be trained in a test: each pixel is
// labelled by whether it is positive, with the same numbers whoever asks for a box.

#include "tessera/data/dataset.h"
#include "tessera/job/job.h"
#include "tessera/loss/add_losses.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/pointwise/relu.h"

namespace tessera {

constexpr int64_t kImageRows = 12, kImageColumns = 10;

/// Two convolutions, one of them with a halo, and two classes.
inline Graph small_network(int64_t batch) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({batch, 1, kImageRows, kImageColumns}));
  x = convolution(graph, x, "conv1", {.out_channels = 4, .kernel = {3}, .padding = {1}});
  x = convolution(graph, relu(graph, x, "relu1"), "conv2", {.out_channels = 2, .kernel = {1}});
  graph.mark_output(x);
  add_losses(graph, {.spec = "cross_entropy"});
  return graph;
}

/// The network in float64 on 2 x 2 ranks.
inline Job small_job(int64_t batch) {
  Job job = make_job(small_network(batch));
  job.real = at::kDouble;
  job.plan.space = {2, 2};
  return job;
}

class SignsOfWaves final : public Dataset {
 public:
  explicit SignsOfWaves(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  Shape image_shape() const override { return {1, kImageRows, kImageColumns}; }
  int64_t num_classes() const override { return 2; }
  bool per_pixel() const override { return true; }

  void load_image(Sample sample, const Box& box, at::Tensor target) const override {
    target.copy_(wave(sample, box[1], box[2]).unsqueeze(0));
  }
  void load_target(Sample sample, const Box& box, at::Tensor target) const override {
    target.copy_(wave(sample, box[0], box[1]).gt(0));
  }

 private:
  static at::Tensor wave(int64_t sample, const Range& rows, const Range& columns) {
    const at::Tensor y = at::arange(rows.begin, rows.end, at::kDouble).unsqueeze(1);
    const at::Tensor x = at::arange(columns.begin, columns.end, at::kDouble).unsqueeze(0);
    return at::sin(1.3 * y + 0.7 * x + static_cast<double>(sample));
  }

  int64_t size_;
};

}  // namespace tessera

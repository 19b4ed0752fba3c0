// Labels are counted once each, however many threads read them, and make balanced weights.

#include "tessera/data/label_counts.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tests/unit/refusal.h"

namespace tessera::label_counts_test {
namespace {

/// Sample s has the label (s + row) % 5 in each row, so that 3 and 4 are outside of three classes,
/// and kIgnoreLabel in its first column.
class Rows final : public Dataset {
 public:
  Rows(int64_t samples, Shape shape) : samples_(samples), shape_(std::move(shape)) {}
  int64_t size() const override { return samples_; }
  Shape image_shape() const override { return {1, 1, 1}; }
  int64_t num_classes() const override { return 5; }
  bool per_pixel() const override { return !shape_.empty(); }
  Shape target_shape() const override { return shape_; }
  void load_image(Sample, const Box&, at::Tensor) const override {}
  void load_target(Sample sample, const Box& box, at::Tensor target) const override {
    if (sample == bad_) throw_error<InvalidInput>("sample {} cannot be read", sample);
    if (shape_.empty()) return void(target.fill_(sample % 5));
    const at::Tensor rows = at::arange(box[0].begin, box[0].end, at::kLong);
    target.copy_(((rows + sample.index) % 5).unsqueeze(1).expand_as(target));
    if (box[1].begin == 0) target.select(1, 0).fill_(kIgnoreLabel);
  }
  int64_t bad_ = -1;

 private:
  int64_t samples_;
  Shape shape_;
};

TEST(LabelCounts, CountEachLabelOnce) {
  // Rows of a million labels: every strip is one of them.
  const Rows data(7, {5, 1'000'001});
  for (int threads : {1, 3, 50})
    EXPECT_EQ(count_labels(data, 3, threads), (std::vector<int64_t>(3, 7'000'000))) << threads;
  EXPECT_EQ(count_labels(Rows(7, {13, 4}), 5, 2),
            (std::vector<int64_t>{54, 57, 57, 54, 51}));  // 13 rows of 3 labels, 7 times
}

TEST(LabelCounts, CountsOneLabelPerSample) {
  EXPECT_EQ(count_labels(Rows(11, {}), 5, 4), (std::vector<int64_t>{3, 2, 2, 2, 2}));
  EXPECT_EQ(count_labels(Rows(11, {}), 2, 1), (std::vector<int64_t>{3, 2}));
}

TEST(LabelCounts, TellsWhatCannotBeRead) {
  Rows data(20, {4, 4});
  data.bad_ = 13;
  for (int threads : {1, 4})
    expect_refusal([&] { count_labels(data, 3, threads); }, "sample 13 cannot be read");
}

TEST(BalancedWeights, MakeUpForTheCounts) {
  EXPECT_EQ(balanced_weights({30, 10, 20}), (std::vector<double>{60 / 90.0, 2, 1}));
  EXPECT_EQ(balanced_weights({30, 0, 10}), (std::vector<double>{40 / 60.0, 1, 2}));
  EXPECT_EQ(balanced_weights({0, 0}), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace tessera::label_counts_test

// Labels are looked at before the first step: all of them, each once, whoever reads it.

#include "tessera/train/label_check.h"

#include <unistd.h>

#include <atomic>

#include "tessera/runtime/rank_session.h"
#include "tests/ranks/train/training.h"
#include "tests/unit/refusal.h"

namespace tessera::label_check_test {
namespace {

constexpr int64_t kRows = 40, kColumns = 36;

/// Zeros, but for one label; counts what is read of it.
class OneOddLabel final : public Dataset {
 public:
  OneOddLabel(int64_t size, int64_t sample, int64_t label)
      : size_(size), odd_sample_(sample), label_(label) {}
  int64_t size() const override { return size_; }
  Shape image_shape() const override { return {1, kRows, kColumns}; }
  int64_t num_classes() const override { return 3; }
  bool per_pixel() const override { return true; }
  void load_image(Sample, const Box&, at::Tensor target) const override { target.zero_(); }
  void load_target(Sample sample, const Box& box, at::Tensor target) const override {
    labels_read += box.volume();
    target.zero_();
    if (sample != odd_sample_ || !box[0].contains(kRows - 1)) return;
    target[kRows - 1 - box[0].begin][kColumns - 1] = label_;
  }

  mutable std::atomic<int64_t> labels_read = 0;

 private:
  int64_t size_, odd_sample_, label_;
};

class LabelCheck : public Training {
 protected:
  /// What the check says on `ranks` ranks of `threads` threads; empty: nothing.
  std::string words(const std::shared_ptr<const OneOddLabel>& data, const std::string& which,
                    int ranks, int threads = 1) {
    TrainConfig configured = config("run", 1);
    configured.label_check = which;
    const TrainingJob job =
        prepare_training(configured, network(2), on_grid({ranks, 1}), at::kDouble, data);
    return refusal([&] {
      run_on_threads(ranks, threads, 60,
                     [&](Transport& transport) { check_all_labels(job, transport); });
    });
  }
};

TEST_F(LabelCheck, FindsTheOneThatIsWrong) {
  for (const int64_t label : {3, -1, 255})
    for (const int64_t sample : {0, 5, 11})
      for (const int ranks : {1, 3}) {
        SCOPED_TRACE(testing::Message() << label << " in " << sample << " on " << ranks);
        const std::string said =
            words(std::make_shared<OneOddLabel>(12, sample, label), "all", ranks, 2);
        EXPECT_NE(said.find("label " + std::to_string(label) + " in sample " +
                            std::to_string(sample) + " "),
                  std::string::npos)
            << said;
        EXPECT_NE(said.find("legal: 0 to 2"), std::string::npos) << said;
      }
}

TEST_F(LabelCheck, ReadsEachLabelOnce) {
  for (const int ranks : {1, 2, 3}) {
    const auto data = std::make_shared<OneOddLabel>(12, 3, kIgnoreLabel);
    EXPECT_EQ(words(data, "all", ranks), "");
    EXPECT_EQ(data->labels_read, 12 * kRows * kColumns) << ranks;
  }
}

TEST_F(LabelCheck, ReadsAsMuchAsItIsTold) {
  const auto unread = std::make_shared<OneOddLabel>(12, 3, 99);
  EXPECT_EQ(words(unread, "none", 2), "");
  EXPECT_EQ(unread->labels_read, 0);
  // A hundred of those that are trained on, and a hundred of those that are validated on.
  const auto sampled = std::make_shared<OneOddLabel>(1000, -1, 0);
  EXPECT_EQ(words(sampled, "sample", 3), "");
  EXPECT_EQ(sampled->labels_read, 200 * kRows * kColumns);
  EXPECT_NE(words(std::make_shared<OneOddLabel>(12, 3, 99), "sample", 2), "") << "all are few";
}

/// The whole run is refused, and leaves no folder.
TEST_F(LabelCheck, ComesBeforeTheRunFolder) {
  const TrainingJob job = prepare_training(config("run", 1), network(2), on_grid({2, 1}),
                                           at::kDouble, std::make_shared<OneOddLabel>(12, 3, 99));
  expect_refusal(
      [&] {
        run_on_threads(2, 1, 60,
                       [&](Transport& transport) { Trainer(job, &transport, "threads").run(); });
      },
      "label 99");
  EXPECT_NE(::access(file("run").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace tessera::label_check_test

// Prefetching gives exactly what the loader gives, foreseen or not, and its thread's failures reach
// the one who asks.

#include "tessera/data/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tessera/base/error.h"
#include "tessera/data/open.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::prefetch_test {
namespace {

constexpr std::chrono::seconds kLimit(60);

const Box kImageBox{{0, 2}, {0, 1}, {8, 30}, {0, 17}};
const Box kTargetBox{{0, 2}, {8, 30}, {0, 17}};
const BatchBox kImages{Field::kImages, kImageBox}, kTargets{Field::kTargets, kTargetBox};

/// Counts loads, and fails or waits where a test wants it to.
class Watched : public Dataset {
 public:
  explicit Watched(std::unique_ptr<Dataset> source) : source_(std::move(source)) {}
  int64_t size() const override { return source_->size(); }
  Shape image_shape() const override { return source_->image_shape(); }
  int64_t num_classes() const override { return source_->num_classes(); }
  bool per_pixel() const override { return source_->per_pixel(); }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override {
    ++num_loads;
    if (gate.valid()) gate.wait();
    if (sample == bad_sample) throw_error<InvalidInput>("sample {} is bad", sample);
    source_->load_image(sample, box, target);
  }
  void load_target(Sample sample, const Box& box, at::Tensor target) const override {
    source_->load_target(sample, box, target);
  }

  mutable std::atomic<int> num_loads = 0;
  std::atomic<int64_t> bad_sample = -1;
  std::shared_future<void> gate;

 private:
  std::unique_ptr<Dataset> source_;
};

struct Fixture {
  Watched data{open_dataset("synthetic:samples=10", {1, 32, 32}, 1)};
  BatchLoader loader{
      data,
      BatchPlan({.num_samples = 10, .batch_size = 2, .seed = 4, .order = BatchOrder::kSequential})};

  at::Tensor direct(const BatchBox& request, int64_t batch) const {
    at::Tensor target =
        at::empty(request.box.shape(), request.field == Field::kImages ? at::kFloat : at::kLong);
    loader.load(request, batch, target);
    return target;
  }
  static at::Tensor taken(Prefetch& prefetch, const BatchBox& request, int64_t batch) {
    at::Tensor target =
        at::empty(request.box.shape(), request.field == Field::kImages ? at::kFloat : at::kLong);
    prefetch.load(request, batch, target);
    return target;
  }
};

TEST(Prefetch, GivesWhatTheLoaderGives) {
  Fixture f;
  Prefetch prefetch(f.loader, {kImages, kTargets}, {});
  for (int64_t batch = 0; batch < 30; ++batch) {
    EXPECT_TRUE(f.taken(prefetch, kImages, batch).equal(f.direct(kImages, batch)));
    EXPECT_TRUE(f.taken(prefetch, kTargets, batch).equal(f.direct(kTargets, batch)));
  }
  EXPECT_EQ(prefetch.num_hits(), 60);
}

TEST(Prefetch, AnyOrderOfRequestsGivesTheSame) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Fixture f;
    Random random(seed);
    Prefetch prefetch(f.loader, {kImages, kTargets},
                      {.first_batch = random.between(0, 3), .end_batch = random.between(0, 12)});
    for (int i = 0; i < 60; ++i) {
      const int64_t batch = random.coin() ? i / 4 : random.between(0, 15);
      BatchBox request = random.coin() ? kImages : kTargets;
      if (random.between(0, 5) == 0) request.box[0] = {1, 2};
      ASSERT_TRUE(f.taken(prefetch, request, batch).equal(f.direct(request, batch)))
          << "seed " << seed << " request " << i;
    }
  }
}

TEST(Prefetch, ComesBackAfterAJump) {
  Fixture f;
  Prefetch prefetch(f.loader, {kImages, kTargets}, {.first_batch = 0});
  for (int64_t batch : {7, 8, 9}) {
    f.taken(prefetch, kImages, batch);
    f.taken(prefetch, kTargets, batch);
  }
  EXPECT_EQ(prefetch.num_hits(), 4);  // all but batch 7's
}

TEST(Prefetch, EmptyAndRepeatedBoxesDoNotStopIt) {
  Fixture f;
  const BatchBox empty{Field::kImages, {{0, 2}, {0, 1}, {8, 8}, {0, 17}}};
  Prefetch prefetch(f.loader, {kImages, empty, kImages}, {});
  for (int64_t batch = 0; batch < 5; ++batch) {
    EXPECT_TRUE(f.taken(prefetch, kImages, batch).equal(f.direct(kImages, batch)));
    EXPECT_EQ(f.taken(prefetch, empty, batch).numel(), 0);
  }
  EXPECT_EQ(prefetch.num_hits(), 5);
}

TEST(Prefetch, AFailureReachesTheRequestOfItsBatch) {
  Fixture f;
  f.data.bad_sample = 5;  // in batch 2
  Prefetch prefetch(f.loader, {kImages, kTargets}, {});
  for (int64_t batch = 0; batch < 2; ++batch) {
    f.taken(prefetch, kImages, batch);
    f.taken(prefetch, kTargets, batch);
  }
  EXPECT_THROW(f.taken(prefetch, kImages, 2), InvalidInput);
  EXPECT_THROW(f.taken(prefetch, kImages, 2), InvalidInput);  // on the spot
  // The data is fixed, or the batch skipped: both go on.
  f.data.bad_sample = -1;
  EXPECT_TRUE(f.taken(prefetch, kImages, 2).equal(f.direct(kImages, 2)));
  EXPECT_TRUE(f.taken(prefetch, kTargets, 2).equal(f.direct(kTargets, 2)));
  EXPECT_TRUE(f.taken(prefetch, kImages, 3).equal(f.direct(kImages, 3)));
}

TEST(Prefetch, AFailureThatNobodyAskedForIsIgnored) {
  Fixture f;
  f.data.bad_sample = 0;
  Prefetch prefetch(f.loader, {kImages}, {});
  EXPECT_TRUE(f.taken(prefetch, kImages, 1).equal(f.direct(kImages, 1)));
  EXPECT_TRUE(f.taken(prefetch, kImages, 2).equal(f.direct(kImages, 2)));
}

TEST(Prefetch, LoadsNothingFromTheEndOn) {
  Fixture f;
  {
    Prefetch prefetch(f.loader, {kImages}, {.first_batch = 0, .end_batch = 2});
    f.taken(prefetch, kImages, 0);
    f.taken(prefetch, kImages, 1);
  }
  EXPECT_EQ(f.data.num_loads, 4);  // two samples in each of two batches
}

TEST(Prefetch, EndsWhileItsThreadIsLoading) {
  Fixture f;
  std::promise<void> open;
  f.data.gate = open.get_future().share();
  auto prefetch = std::make_unique<Prefetch>(f.loader, std::vector<BatchBox>{kImages, kTargets},
                                             PrefetchOptions{});
  const auto limit = std::chrono::steady_clock::now() + kLimit;
  while (f.data.num_loads == 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  ASSERT_EQ(f.data.num_loads, 1);
  auto ended = std::async(std::launch::async, [&] { prefetch.reset(); });
  open.set_value();
  ASSERT_EQ(ended.wait_for(kLimit), std::future_status::ready);
}

TEST(Prefetch, ComesAndGoesManyTimes) {
  Fixture f;
  for (int64_t i = 0; i < 200; ++i) {
    Prefetch prefetch(f.loader, {kImages, kTargets}, {.first_batch = i % 5});
    if (i % 3 == 0) f.taken(prefetch, kTargets, i % 5);
  }
}

TEST(Prefetch, ARankWithoutBoxesHasNothingToDo) {
  Fixture f;
  Prefetch prefetch(f.loader, {}, {});
  EXPECT_TRUE(f.taken(prefetch, kImages, 1).equal(f.direct(kImages, 1)));
  EXPECT_EQ(prefetch.num_hits(), 0);
}

}  // namespace
}  // namespace tessera::prefetch_test

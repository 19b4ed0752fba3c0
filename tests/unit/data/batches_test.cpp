// Order and batches: each epoch is a permutation, a function of (seed, epoch) alone; splits are
// disjoint; a batch's box is the same however it is cut among ranks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tessera/base/error.h"
#include "tessera/data/batch_loader.h"
#include "tessera/data/open.h"
#include "tessera/data/permutation.h"
#include "tessera/data/subset.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::batches_test {
namespace {

std::vector<int64_t> order(const RandomKey& key, int64_t count) {
  std::vector<int64_t> result;
  for (int64_t place = 0; place < count; ++place) result.push_back(permuted(key, place, count));
  return result;
}

std::vector<int64_t> counting(int64_t count) {
  std::vector<int64_t> result(static_cast<size_t>(count));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

TEST(Permutation, HasEachElementOnce) {
  for (int64_t count = 1; count <= 300; ++count) {
    std::vector<int64_t> found = order(RandomKey(7).with(static_cast<uint64_t>(count)), count);
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found, counting(count)) << count;
  }
  for (const int64_t count : {int64_t{1} << 20, (int64_t{1} << 40) + 1})
    for (int64_t place = 0; place < count; place += count / 97) {
      const int64_t element = permuted(RandomKey(1), place, count);
      EXPECT_TRUE(0 <= element && element < count);
    }
}

TEST(Permutation, PlacesAreAboutUniform) {
  for (const int64_t count : {2, 3, 5, 8, 13}) {
    std::vector<int> first(static_cast<size_t>(count), 0);
    constexpr int kTrials = 6000;
    for (uint64_t trial = 0; trial < kTrials; ++trial)
      ++first[permuted(RandomKey(3).with(trial), count - 1, count)];
    const double expected = static_cast<double>(kTrials) / static_cast<double>(count);
    // Six standard deviations.
    for (int hits : first) EXPECT_NEAR(hits, expected, 6 * std::sqrt(expected)) << count;
  }
  std::set<std::vector<int64_t>> orders;
  for (uint64_t trial = 0; trial < 2000; ++trial) orders.insert(order(RandomKey(trial), 4));
  EXPECT_EQ(orders.size(), 24u);
}

TEST(BatchPlan, EachEpochIsAnotherPermutation) {
  const BatchPlan plan({.num_samples = 30, .batch_size = 5, .seed = 2});
  ASSERT_EQ(plan.batches_per_epoch(), 6);
  std::set<std::vector<int64_t>> epochs;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<int64_t> samples;
    for (int64_t step = 0; step < 6; ++step)
      for (int64_t entry = 0; entry < 5; ++entry)
        samples.push_back(plan.sample(epoch * 6 + step, entry));
    epochs.insert(samples);
    std::sort(samples.begin(), samples.end());
    EXPECT_EQ(samples, counting(30));
  }
  EXPECT_EQ(epochs.size(), 4u);
}

/// Equal weights are none; others give each sample its share of every epoch, rounded either way.
TEST(BatchPlan, SamplesAreDrawnByTheirWeights) {
  const BatchPlan plain({.num_samples = 30, .batch_size = 5, .seed = 2});
  const BatchPlan equal(
      {.num_samples = 30, .batch_size = 5, .seed = 2, .weights = std::vector<double>(30, 0.3)});
  for (int64_t batch = 0; batch < 12; ++batch)
    for (int64_t entry = 0; entry < 5; ++entry)
      EXPECT_EQ(equal.sample(batch, entry), plain.sample(batch, entry));
  const std::vector<double> weights{0, 1, 2.5, 0.5, 0};
  const BatchPlan plan({.num_samples = 5, .batch_size = 1, .seed = 4, .weights = weights});
  std::vector<int64_t> hits(5, 0);
  std::set<std::vector<int64_t>> orders;
  constexpr int64_t kEpochs = 4000;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    std::vector<int64_t> samples, of_epoch(5, 0);
    for (int64_t step = 0; step < 5; ++step) samples.push_back(plan.sample(epoch * 5 + step, 0));
    for (int64_t sample : samples) ++hits[sample], ++of_epoch[sample];
    for (int64_t sample = 0; sample < 5; ++sample) {
      const double share = 5 * weights[sample] / 4;
      EXPECT_LE(std::abs(static_cast<double>(of_epoch[sample]) - share), 1) << sample;
    }
    orders.insert(samples);
  }
  EXPECT_EQ(hits[0] + hits[4], 0);
  for (int64_t sample = 1; sample < 4; ++sample)
    EXPECT_NEAR(static_cast<double>(hits[sample]) / kEpochs, 5 * weights[sample] / 4, 0.05);
  EXPECT_GT(orders.size(), 20u);
  for (const std::vector<double>& bad :
       {std::vector<double>{0, 0}, {1, -1}, {1, std::nan("")}, {1, INFINITY}})
    EXPECT_THROW(BatchPlan({.num_samples = 2, .batch_size = 1, .weights = bad}), InvalidInput);
}

TEST(BatchPlan, LastBatchRules) {
  const BatchPlanOptions base{.num_samples = 11, .batch_size = 4, .order = BatchOrder::kSequential};
  BatchPlanOptions options = base;
  const BatchPlan drop(options);
  EXPECT_EQ(drop.batches_per_epoch(), 2);
  EXPECT_EQ(drop.sample(2, 0), 0);
  for (const LastBatch last : {LastBatch::kWrap, LastBatch::kPad}) {
    options.last = last;
    const BatchPlan plan(options);
    ASSERT_EQ(plan.batches_per_epoch(), 3);
    EXPECT_EQ(plan.sample(2, 2), 10);
    EXPECT_EQ(plan.sample(2, 3), 0);
    EXPECT_FALSE(plan.is_repeat(2, 2));
    EXPECT_TRUE(plan.is_repeat(2, 3));
    EXPECT_EQ(plan.is_padding(2, 3), last == LastBatch::kPad);
    EXPECT_EQ(plan.epoch_of(3), 1);
    EXPECT_EQ(plan.sample(3, 0), 0);
  }
  options.last = LastBatch::kKeep;
  const BatchPlan keep(options);
  EXPECT_EQ(keep.batches_per_epoch(), 3);
  EXPECT_EQ(keep.size_of(1), 4);
  EXPECT_EQ(keep.size_of(2), 3);
  EXPECT_EQ(keep.size_of(3), 4);
  EXPECT_EQ(keep.last_size(), 3);
  EXPECT_EQ(keep.sample(2, 2), 10);
  EXPECT_EQ(keep.sample(3, 0), 0);
  EXPECT_EQ(drop.last_size(), 4);
  options.num_samples = 2;  // fewer than a batch
  EXPECT_EQ(BatchPlan(options).size_of(3), 2);
  options.last = LastBatch::kPad;  // round and round
  EXPECT_EQ(BatchPlan(options).sample(0, 3), 1);
  options.last = LastBatch::kDrop;
  EXPECT_THROW(BatchPlan{options}, InvalidInput);
  EXPECT_THROW(BatchPlan({.num_samples = 0, .batch_size = 1}), InvalidInput);
  EXPECT_THROW(BatchPlan({.num_samples = 1, .batch_size = 0}), InvalidInput);
}

TEST(Split, IsDisjointAndAFunctionOfTheSeed) {
  const std::shared_ptr<const Dataset> data = open_dataset("synthetic:samples=50", {1, 32, 32}, 1);
  const DatasetSplit split = split_dataset(data, 0.3, 7), again = split_dataset(data, 0.3, 7);
  EXPECT_EQ(split.validation->size(), 15);
  EXPECT_EQ(split.train->samples(), again.train->samples());
  EXPECT_NE(split.validation->samples(), split_dataset(data, 0.3, 8).validation->samples());
  std::vector<int64_t> all = split.train->samples();
  all.insert(all.end(), split.validation->samples().begin(), split.validation->samples().end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, counting(50));
  at::Tensor a = at::empty({1, 32, 32}), b = at::empty({1, 32, 32});
  split.train->load_image(3, Box::whole({1, 32, 32}), a);
  data->load_image(split.train->samples()[3], Box::whole({1, 32, 32}), b);
  EXPECT_TRUE(a.equal(b));
}

TEST(Split, EdgesOfTheFraction) {
  const std::shared_ptr<const Dataset> data = open_dataset("synthetic:samples=3", {1, 32, 32}, 1);
  EXPECT_EQ(split_dataset(data, 0, 1).validation, nullptr);
  EXPECT_EQ(split_dataset(data, 0.01, 1).validation->size(), 1);
  for (const double fraction : {-0.1, 1.0, 0.99, std::nan("")})
    EXPECT_THROW(split_dataset(data, fraction, 1), InvalidInput) << fraction;
  EXPECT_THROW(Subset(data, {0, 3}), InvalidInput);
  EXPECT_THROW(Subset(data, {-1}), InvalidInput);
}

/// The batch put together from boxes that many ranks would load.
at::Tensor assembled(const BatchLoader& loader, Field field, int64_t batch, const Layout& layout,
                     at::ScalarType type) {
  at::Tensor whole = at::empty(loader.shape(field), type);
  for (const Piece& piece : layout.pieces()) {
    at::Tensor part = whole;
    for (int axis = 0; axis < piece.box.num_axes(); ++axis)
      part = part.slice(axis, piece.box[axis].begin,
                        std::max(piece.box[axis].begin, piece.box[axis].end));
    loader.load({field, piece.box}, batch, part);
  }
  return whole;
}

TEST(BatchLoader, DoesNotDependOnHowRanksCutTheBatch) {
  const auto data = open_dataset("synthetic:samples=6", {2, 40, 36}, 1);
  const BatchLoader loader(*data, BatchPlan({.num_samples = 6, .batch_size = 3, .seed = 5}));
  EXPECT_EQ(loader.shape(Field::kImages), (Shape{3, 2, 40, 36}));
  EXPECT_EQ(loader.shape(Field::kTargets), (Shape{3, 40, 36}));
  for (const Field field : {Field::kImages, Field::kTargets}) {
    const at::ScalarType type = field == Field::kImages ? at::kFloat : at::kLong;
    at::Tensor whole = at::empty(loader.shape(field), type);
    loader.load({field, Box::whole(loader.shape(field))}, 3, whole);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Random random(seed);
      const int num_ranks = static_cast<int>(random.between(1, 12));
      const Layout layout(loader.shape(field), random_grid(random, loader.shape(field), num_ranks));
      EXPECT_TRUE(assembled(loader, field, 3, layout, type).equal(whole)) << "seed " << seed;
    }
  }
}

TEST(BatchLoader, EntriesAreThePlansSamples) {
  const auto data = open_dataset("synthetic:kind=classification,samples=5", {1, 64}, 1);
  const BatchPlan plan({.num_samples = 5, .batch_size = 4, .last = LastBatch::kPad});
  const BatchLoader loader(*data, plan);
  at::Tensor images = at::empty({4, 1, 64}), image = at::empty({1, 64});
  at::Tensor labels = at::empty({4}, at::kLong), label = at::empty({}, at::kLong);
  loader.load({Field::kImages, Box::whole({4, 1, 64})}, 1, images);
  loader.load({Field::kTargets, Box::whole({4})}, 1, labels);
  for (int64_t entry = 0; entry < 4; ++entry) {
    data->load_image(plan.sample(1, entry), Box::whole({1, 64}), image);
    EXPECT_TRUE(images[entry].equal(image));
    data->load_target(plan.sample(1, entry), Box(), label);
    EXPECT_EQ(labels[entry].item<int64_t>(), entry == 0 ? label.item<int64_t>() : kIgnoreLabel);
  }
}

TEST(BatchLoader, RefusesBoxesThatAreNone) {
  const auto data = open_dataset("synthetic:samples=2", {1, 64}, 1);
  const BatchLoader loader(*data, BatchPlan({.num_samples = 2, .batch_size = 1}));
  EXPECT_THROW(loader.load({Field::kImages, {{0, 1}, {0, 1}, {0, 65}}}, 0, at::empty({1, 1, 65})),
               InternalError);
  EXPECT_THROW(loader.load({Field::kImages, {{0, 1}, {0, 64}}}, 0, at::empty({1, 64})),
               InternalError);
  EXPECT_THROW(loader.load({Field::kImages, {{0, 1}, {0, 1}, {0, 64}}}, 0, at::empty({1, 1, 63})),
               InternalError);
}

}  // namespace
}  // namespace tessera::batches_test

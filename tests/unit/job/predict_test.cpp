#include "tessera/job/predict.h"

#include <gtest/gtest.h>

#include "tessera/checkpoint/weights.h"
#include "tessera/data/array_reader.h"
#include "tessera/graph/reference.h"
#include "tests/unit/job/small_job.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::predict_test {
namespace {

constexpr int64_t kSamples = 5;  // the last batch of two is filled up

/// Other weights than those with which the job would begin, and such that both classes occur.
std::vector<at::Tensor> trained_weights(const Graph& graph) {
  std::vector<at::Tensor> weights;
  for (const Parameter& parameter : graph.parameters())
    weights.push_back(initial_value(parameter, /*seed=*/20));
  return weights;
}

/// What the oracle says of all samples at once.
at::Tensor expected_logits() {
  const Graph graph = small_network(kSamples);
  const SignsOfWaves data(kSamples);
  const at::Tensor images = at::empty({kSamples, 1, kImageRows, kImageColumns}, at::kDouble);
  for (int64_t sample = 0; sample < kSamples; ++sample)
    data.load_image(sample, Box::whole(data.image_shape()), images[sample]);
  std::vector<at::Tensor> weights = trained_weights(graph);
  const at::Tensor labels = at::zeros({kSamples, kImageRows, kImageColumns}, at::kLong);
  return run_reference(graph, {images, labels}, weights, 1, 0).outputs[0].detach();
}

at::Tensor read(const std::string& path, at::ScalarType type) {
  const ArrayReader file(path);
  const at::Tensor whole = at::empty(file.shape(), type);
  file.read(Box::whole(file.shape()), whole);
  return whole;
}

class PredictJob : public testing::Test {
 protected:
  PredictJob() {
    save_weights(folder / "weights.safetensors", job.graph(), trained_weights(job.graph()));
    request.weights = folder / "weights.safetensors";
  }

  const ScratchFolder folder;
  const Job job = small_job(2);
  const SignsOfWaves data{kSamples};
  PredictRequest request;
};

TEST_F(PredictJob, WritesTheClassesThatTheOutputsGive) {
  request.classes = folder / "classes.npy";
  predict(job, data, request);
  const at::Tensor expected = expected_logits().argmax(1);
  ASSERT_GT(expected.sum().item<int64_t>(), 0) << "all of one class: nothing is compared";
  ASSERT_LT(expected.sum().item<int64_t>(), expected.numel());
  EXPECT_TRUE(read(request.classes, at::kLong).equal(expected));
  EXPECT_EQ(names_in(folder.path()),
            (std::vector<std::string>{"classes.npy", "weights.safetensors"}));
}

TEST_F(PredictJob, WritesOutputsAndProbabilities) {
  request.raw = folder / "raw.npy";
  request.probabilities = folder / "probabilities.npy";
  predict(job, data, request);
  const at::Tensor expected = expected_logits();
  EXPECT_TRUE(read(request.raw, at::kDouble).allclose(expected, 1e-12, 1e-12));
  EXPECT_TRUE(
      read(request.probabilities, at::kDouble).allclose(at::softmax(expected, 1), 1e-5, 1e-6));
}

TEST_F(PredictJob, RefusesToRunWithoutResultsOrWeights) {
  expect_refusal([&] { predict(job, data, request); }, "give it, --probabilities or --raw");
  request.classes = folder / "classes.npy";
  request.weights.clear();
  expect_refusal([&] { predict(job, data, request); }, "give a safetensors file or a checkpoint");
}

}  // namespace
}  // namespace tessera::predict_test

// The last batch of an epoch has the samples that are left: its gradients, its norms' statistics
// and its losses' means are those of a network for so many samples, on every placement.

#include "tessera/graph/transform.h"
#include "tessera/loss/add_losses.h"
#include "tessera/runtime/rank_session.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/train/reference_run.h"
#include "tests/ranks/train/training.h"
#include "tests/unit/refusal.h"

namespace tessera::partial_batch_test {
namespace {

/// Seven samples in batches of three or four leave one, or three. Two epochs and a step.
TrainConfig seven_samples(TrainConfig config, const std::string& kind) {
  config.data = "synthetic:kind=" + kind + ",samples=7,classes=3";
  config.validation_fraction = 0;
  config.clip_norm = 0;
  config.schedule = "constant";
  config.steps = 7;
  return config;
}

class PartialBatch : public Training {
 protected:
  void expect_reference(const Trained& run, const std::vector<at::Tensor>& expected) {
    EXPECT_LE(difference(run, {{}, expected}), 1e-10);
  }
};

Graph segmenter(int64_t batch) {
  return build_model("unet2d:base=2,depth=2,classes=3", {batch, 1, 13, 14});
}
Graph classifier(int64_t batch) {
  return build_model("cnn2d:base=3,depth=2,classes=3", {batch, 1, 13, 14});
}
Graph without_norm(int64_t batch) {
  return build_model("unet2d:base=2,depth=2,classes=3,norm=none", {batch, 1, 13, 14});
}

TEST_F(PartialBatch, IsExactOnEveryGrid) {
  for (const auto& [kind, network] :
       {std::pair<std::string, NetworkOfBatch>{"segmentation", segmenter},
        {"classification", classifier}})
    for (int64_t batch : {3, 4}) {
      SCOPED_TRACE(fmt::format("{}, batches of {}", kind, batch));
      TrainConfig each = seven_samples(config(fmt::format("{}{}", kind, batch), 7), kind);
      const auto expected = train_by_reference(each, batch, network);
      for (const Plan& plan :
           {Plan{}, on_grid({2, 2}), on_grid({1, 3}, 2, {2, 1}), on_grid({}, 3)}) {
        SCOPED_TRACE(to_string(plan));
        each.folder += "x";
        expect_reference(train(each, plan, network(batch)), expected);
      }
    }
}

TEST_F(PartialBatch, IsExactOnStages) {  // three samples in two micro-batches, and one in two
  for (int64_t batch : {3, 4}) {
    TrainConfig each = seven_samples(config(fmt::format("stages{}", batch), 7), "segmentation");
    const auto expected = train_by_reference(each, batch, without_norm);
    const Graph graph = without_norm(batch);
    for (const ScheduleKind schedule :
         {ScheduleKind::kOneForwardOneBackward, ScheduleKind::kGpipe}) {
      SCOPED_TRACE(fmt::format("batch {}, {}", batch, to_string(schedule)));
      each.folder += "x";
      expect_reference(train(each, on_stages(graph, {{2, 1}, {}}, 2, schedule), graph), expected);
    }
  }
}

TEST_F(PartialBatch, AddsUpWithOthers) {
  // Batches of 3, 3 and 1 in steps of two: the first step of the second epoch begins with the one.
  TrainConfig each = seven_samples(config("accumulated", 5), "segmentation");
  each.accumulation = 2;
  each.steps = 5;
  const Trained one = train(each, {}, without_norm(3));
  const TrainingJob job = prepare_training(each, without_norm(3), {}, at::kDouble);
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : job.graph.parameters())
    parameters.push_back(initial_value(parameter, each.seed));
  const std::unique_ptr<Optimiser> optimiser = configured_optimiser(each);
  for (int64_t step = 0; step < 5; ++step) {
    std::vector<at::Tensor> gradients;
    for (int64_t batch = 2 * step; batch < 2 * step + 2; ++batch) {
      const Graph graph = without_norm(batch % 3 == 2 ? 1 : 3);
      const auto result = run_reference(graph, batch_inputs(job.train_loader(), graph, batch),
                                        parameters, each.seed, batch);
      for (size_t id = 0; id < parameters.size(); ++id)
        if (gradients.size() <= id)
          gradients.push_back(result.gradients[id] / 2);
        else
          gradients[id].add_(result.gradients[id] / 2);
    }
    optimiser->step(parameters, gradients);
  }
  expect_reference(one, parameters);
  each.folder += "_grid";
  EXPECT_LE(difference(train(each, on_grid({2, 1}, 2), without_norm(3)), one), 1e-10);
}

/// Images, and twice their pixels as numbers to be met.
class Doubled final : public Dataset {
 public:
  int64_t size() const override { return 12; }
  Shape image_shape() const override { return {1, 13, 14}; }
  int64_t num_classes() const override { return 1; }
  bool per_pixel() const override { return true; }
  bool real_targets() const override { return true; }
  Shape target_shape() const override { return image_shape(); }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override {
    const at::Tensor row = at::arange(box[1].begin, box[1].end, at::kDouble).unsqueeze(1);
    const at::Tensor column = at::arange(box[2].begin, box[2].end, at::kDouble).unsqueeze(0);
    target.copy_(at::sin(row + 2 * column + static_cast<double>(sample)).unsqueeze(0));
  }
  void load_target(Sample sample, const Box& box, at::Tensor target) const override {
    load_image(sample, box, target);
    target.mul_(2);
  }
};

TEST_F(PartialBatch, OfNumbersIsValidatedOnce) {
  const auto network = [](int64_t batch) {
    Graph graph =
        prune(build_model("unet2d:base=2,depth=2,classes=1,norm=instance", {batch, 1, 13, 14}),
              Losses::kDrop);
    add_losses(graph, {.spec = "mse"});
    return graph;
  };
  TrainConfig each = seven_samples(config("numbers", 1), "segmentation");
  each.validation_fraction = 0.4;  // five samples
  each.learning_rate = 0;
  each.steps = 1;
  std::vector<double> losses;
  for (const auto& [batch, plan] :
       {std::pair<int64_t, Plan>{1, {}}, {2, on_grid({2, 1})}, {5, {}}, {7, on_grid({1, 2}, 2)}}) {
    each.folder += "x";
    const TrainingJob job =
        prepare_training(each, network(batch), plan, at::kDouble, std::make_shared<Doubled>());
    run_on_threads(plan.num_ranks(), 1, 60, [&](Transport& transport) {
      const TrainOutcome outcome = Trainer(job, &transport, "threads").run();
      if (transport.rank() == 0) losses.push_back(outcome.validation->loss);
    });
  }
  for (double loss : losses) EXPECT_NEAR(loss, losses[0], 1e-12);
}

TEST_F(PartialBatch, IsDroppedWhereThatIsAskedFor) {
  TrainConfig each = seven_samples(config("dropped", 4), "segmentation");
  each.drop_last = true;
  const TrainingJob dropped = prepare_training(each, segmenter(3), {}, at::kDouble);
  EXPECT_EQ(dropped.steps_per_epoch, 2);
  EXPECT_TRUE(dropped.partial_micro_steps.empty());
  each.drop_last = false;
  const TrainingJob kept = prepare_training(each, segmenter(3), {}, at::kDouble);
  EXPECT_EQ(kept.steps_per_epoch, 3);
  EXPECT_EQ(kept.partial_micro_steps.size(), 1u);
  EXPECT_EQ(kept.partial_micro_steps[0]->graph().type(0).batch(), 1);
}

TEST_F(PartialBatch, OfOneValuePerNormIsRefused) {  // as PyTorch does, but before the first step
  TrainConfig each = seven_samples(config("alone", 4), "classification");
  const auto tiny = [](int64_t batch) {
    return build_model("cnn2d:base=2,depth=1,classes=3", {batch, 1, 8, 8});
  };
  EXPECT_NO_THROW(prepare_training(each, tiny(3), {}, at::kDouble));
  const auto alone = [](int64_t batch) {
    return build_model("resnet18:width=2,classes=3", {batch, 1, 8, 8});
  };
  expect_refusal([&] { prepare_training(each, alone(3), {}, at::kDouble); },
                 "the last batch of an epoch has 1 of 3 samples");
  expect_refusal([&] { prepare_training(each, alone(3), {}, at::kDouble); }, "--drop-last");
}

}  // namespace
}  // namespace tessera::partial_batch_test

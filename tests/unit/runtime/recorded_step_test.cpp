// Steps that are recorded and replayed, on a device that only pretends: it is the CPU, and what it
// has recorded it does again.

#include <gtest/gtest.h>

#include "tessera/lower/lower.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/gradient_reversal.h"
#include "tessera/optim/optimiser.h"
#include "tessera/runtime/executor.h"
#include "tessera/runtime/rank_session.h"
#include "tests/unit/graph/two_layers.h"

namespace tessera::recorded_step_test {
namespace {

/// Does while it records what a GPU only takes down: all of it writes numbers that the replay
/// writes again.
class RecordingDevice final : public Device {
 public:
  at::Device place() const override { return at::kCPU; }
  ImageLayout layout() const override { return ImageLayout::kContiguous; }
  at::Tensor block(int64_t bytes) override { return host_device().block(bytes); }
  at::Tensor on_host(at::IntArrayRef shape, at::ScalarType type) override {
    return at::empty(shape, type);
  }
  DeviceQueue* queue(Stream) override { return nullptr; }
  bool can_record() const override { return true; }
  std::unique_ptr<DeviceRecording> record(const std::function<void()>& body) override {
    ++num_recorded;
    body();
    if (refuses) return nullptr;
    return std::make_unique<Again>(body, &num_replayed);
  }
  std::unique_ptr<DeviceTimer> timer() override { return nullptr; }
  int64_t live_bytes() const override { return 0; }
  int64_t peak_bytes() const override { return 0; }
  void reset_peak() override {}

  bool refuses = false;
  int num_recorded = 0, num_replayed = 0;

 private:
  class Again final : public DeviceRecording {
   public:
    Again(std::function<void()> body, int* count) : body_(std::move(body)), count_(count) {}
    void replay() override {
      ++*count_;
      body_();
    }

   private:
    const std::function<void()> body_;
    int* const count_;
  };
};

/// Training steps of a graph on a device, by themselves.
class Steps {
 public:
  Steps(const Graph& graph, Device& device, Transport& transport)
      : optimiser_(sgd({.learning_rate = 0.1})),
        lowered_(graph, {},
                 {.step = StepKind::kTrain,
                  .keep_outputs = true,
                  .clip_norm = 0.5,
                  .optimiser = {optimiser_->state_copies(), optimiser_->counts_steps()}}),
        parameters_(lowered_.graph(), lowered_.program(0).parameters, 1, at::kDouble, device),
        executor_(lowered_.graph(), lowered_.program(0), &parameters_, &transport, {at::kDouble}) {
    optimiser_->keep_state_in(parameters_.states());
  }

  void run(int64_t step, const std::function<void()>& gradients_complete = {}) {
    StepContext context{.seed = 1, .step = step};
    context.load = [&](ValueId input, const Box& box, at::Tensor target) {
      ++num_loads;
      load_noise(lowered_.graph(), input, /*seed=*/1, step, box, target);
    };
    context.update = [&] { optimiser_->step(parameters_.values(), parameters_.gradients()); };
    context.gradients_complete = gradients_complete;
    executor_.run(context);
  }

  /// Loss, norm and output of the last step, and the weights after it.
  std::vector<at::Tensor> numbers() {
    std::vector<at::Tensor> all{at::scalar_tensor(executor_.loss(), at::kDouble),
                                at::scalar_tensor(executor_.gradient_norm(), at::kDouble),
                                executor_.result(executor_.program().outputs[0]).clone()};
    for (const at::Tensor& value : parameters_.values()) all.push_back(value.clone());
    return all;
  }

  ParameterStore& parameters() { return parameters_; }
  const MemoryCounters& memory() const { return executor_.memory(); }
  int num_loads = 0;

 private:
  const std::unique_ptr<Optimiser> optimiser_;
  const Lowering lowered_;
  ParameterStore parameters_;
  Executor executor_;
};

void on_one_rank(const std::function<void(Transport&)>& body) {
  run_on_threads(1, 1, /*timeout_seconds=*/30, body);
}

void expect_same_bits(Steps& ours, Steps& theirs) {
  const std::vector<at::Tensor> a = ours.numbers(), b = theirs.numbers();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << i;
  EXPECT_EQ(ours.memory().peak_value_bytes, theirs.memory().peak_value_bytes);
  EXPECT_EQ(ours.memory().arena_bytes, theirs.memory().arena_bytes);
  EXPECT_EQ(ours.num_loads, theirs.num_loads) << "a step reads its inputs once";
}

Graph with_loss(Graph graph, ValueId hidden) {
  const ValueId y = convolution(graph, hidden, "head", {.out_channels = 2, .kernel = {1}});
  graph.mark_output(y);
  mean_squared_error(graph, y, add_real_target(graph, y, "target"), "loss");
  return graph;
}

Graph with_dropout() {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({2, 3, 9, 8}));
  x = convolution(graph, x, "hidden", {.out_channels = 4, .kernel = {3}, .padding = {1}});
  x = dropout(graph, x, "drop", {.probability = 0.4});
  return with_loss(std::move(graph), x);
}

TEST(RecordedStep, HasTheBitsOfAStepThatIsNot) {
  on_one_rank([](Transport& transport) {
    RecordingDevice device;
    Steps recorded(with_dropout(), device, transport);
    Steps plain(with_dropout(), host_device(), transport);
    for (int64_t step = 0; step < 5; ++step) {
      recorded.run(step);
      plain.run(step);
      expect_same_bits(recorded, plain);
    }
    EXPECT_EQ(device.num_recorded, 1);
    EXPECT_EQ(device.num_replayed, 4) << "the first step chooses how kernels work";
  });
}

/// Who looks at gradients gets a step of its own, in the middle of replayed ones.
TEST(RecordedStep, IsLeftOutWhereSomebodyLooksOn) {
  on_one_rank([](Transport& transport) {
    RecordingDevice device;
    Steps recorded(with_dropout(), device, transport);
    Steps plain(with_dropout(), host_device(), transport);
    int seen = 0;
    for (int64_t step = 0; step < 6; ++step) {
      recorded.run(step, step == 3 ? std::function<void()>([&] { ++seen; }) : nullptr);
      plain.run(step);
      expect_same_bits(recorded, plain);
    }
    EXPECT_EQ(seen, 1);
    EXPECT_EQ(device.num_replayed, 4);
  });
}

/// Weights that lie somewhere else now are not those that the recorded work reads.
TEST(RecordedStep, IsRecordedAgainWhenWeightsHaveMoved) {
  on_one_rank([](Transport& transport) {
    RecordingDevice device;
    Steps recorded(with_dropout(), device, transport);
    Steps plain(with_dropout(), host_device(), transport);
    for (int64_t step = 0; step < 6; ++step) {
      if (step == 3) {
        at::Tensor& weight = recorded.parameters().values()[0];
        weight = weight.clone();
      }
      recorded.run(step);
      plain.run(step);
      expect_same_bits(recorded, plain);
    }
    EXPECT_EQ(device.num_recorded, 2);
  });
}

TEST(RecordedStep, IsDoneOneByOneWhereTheDeviceCannotRecordIt) {
  on_one_rank([](Transport& transport) {
    RecordingDevice device;
    device.refuses = true;
    Steps refused(with_dropout(), device, transport);
    Steps plain(with_dropout(), host_device(), transport);
    for (int64_t step = 0; step < 4; ++step) {
      refused.run(step);
      plain.run(step);
      plain.num_loads = refused.num_loads;  // inputs were read for the trial, too
      expect_same_bits(refused, plain);
    }
    EXPECT_EQ(device.num_recorded, 1) << "it is not tried again";
    EXPECT_EQ(device.num_replayed, 0);
  });
}

/// The factor of a gradient reversal grows with the steps: a number of the host.
TEST(RecordedStep, IsNotTriedWhereAnOperatorReadsTheStep) {
  on_one_rank([](Transport& transport) {
    Graph graph;
    ValueId x = graph.add_input("image", ValueType::image({2, 3, 9, 8}));
    x = convolution(graph, x, "hidden", {.out_channels = 4, .kernel = {3}});
    x = gradient_reversal(graph, x, "reverse", StepFunction(1, 0, 10));
    graph = with_loss(std::move(graph), x);
    RecordingDevice device;
    Steps steps(graph, device, transport);
    for (int64_t step = 0; step < 4; ++step) steps.run(step);
    EXPECT_EQ(device.num_recorded, 0);
  });
}

}  // namespace
}  // namespace tessera::recorded_step_test

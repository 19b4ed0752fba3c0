// How a step ends, read off the program: reductions end early, then norm, clipping and update.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tessera/lower/lower.h"
#include "tessera/simulate/simulator.h"
#include "tessera/simulate/timeline.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/refusal.h"

namespace tessera::update_test {
namespace {

template <class T>
std::vector<size_t> places_of(const Program& program) {
  std::vector<size_t> places;
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (std::holds_alternative<T>(program.instructions[i])) places.push_back(i);
  return places;
}

Graph network() { return build_model("cnn2d:base=4,depth=3", {2, 3, 32, 32}); }

/// Small buckets, so that there are several.
Program program_of(const LowerOptions& options, const Plan& plan = {1, {2, 1}, {}}) {
  LowerOptions small = options;
  small.bucket_elements = 300;
  return Lowering(network(), plan, small).program(0);
}

TEST(Update, ComesAfterTheNormAndNamesWhatItTouches) {
  const Program program =
      program_of({.step = StepKind::kTrain, .clip_norm = 2, .optimiser = {2, true}});
  const size_t squares = places_of<SquareGradients>(program).at(0);
  const size_t clip = places_of<Clip>(program).at(0), update = places_of<Update>(program).at(0);
  EXPECT_LT(places_of<FinishReduce>(program).back(), squares);
  EXPECT_LT(squares, clip);
  EXPECT_LT(clip, update);
  EXPECT_EQ(std::get<Clip>(program.instructions[clip]).max_norm, 2);
  const auto& named = std::get<Update>(program.instructions[update]);
  ASSERT_GT(program.buckets.size(), 1u);
  EXPECT_EQ(named.buckets.size(), program.buckets.size());
  EXPECT_EQ(named.state.size(), 3 * program.buckets.size());
  EXPECT_EQ(named.norm, program.norm);
  EXPECT_EQ(named.loss, program.loss);
  size_t trainable = 0;
  for (const Bucket& bucket : program.buckets) trainable += bucket.parameters.size();
  EXPECT_EQ(named.weights.size(), trainable);
  EXPECT_LT(trainable, program.parameters.size()) << "running statistics are not updated here";
}

TEST(Update, WeightsAndTheirGradientsAreArguments) {
  const Program program = program_of({.step = StepKind::kTrain});
  int weight_gradients = 0;
  for (const Instruction& instruction : program.instructions) {
    const auto* run = std::get_if<tessera::Run>(&instruction);
    if (run == nullptr) continue;
    for (const Argument& argument : run->arguments) {
      const BufferKind kind = argument.view.buffer < 0 ? BufferKind::kValue
                                                       : program.buffers[argument.view.buffer].kind;
      if (argument.role == Role::kWeight) {
        EXPECT_EQ(kind, BufferKind::kWeight);
      }
      if (argument.role != Role::kGradWeight) continue;
      EXPECT_EQ(kind, BufferKind::kBucket);
      EXPECT_EQ(run->phase, Phase::kWeightGradient);
      ++weight_gradients;
    }
  }
  EXPECT_GT(weight_gradients, 0);
}

/// Gradients take memory from the first addition on, unless they were there before.
TEST(Update, BucketsBeginWithTheirFirstGradient) {
  for (const bool zero_gradients : {true, false}) {
    const Program program =
        program_of({.step = StepKind::kTrain, .zero_gradients = zero_gradients});
    for (const Bucket& bucket : program.buckets) {
      EXPECT_EQ(program.buffers[bucket.buffer].kind,
                zero_gradients ? BufferKind::kBucket : BufferKind::kAccumulatedBucket);
      const auto of_bucket = [&](const auto* each) {
        return each && each->buffer == bucket.buffer;
      };
      int allocs = 0, frees = 0;
      bool touched = false;
      for (const Instruction& each : program.instructions) {
        allocs += of_bucket(std::get_if<Alloc>(&each)) ? 1 : 0;
        frees += of_bucket(std::get_if<Free>(&each)) ? 1 : 0;
        if (touched || !zero_gradients || allocs == 0) continue;
        if (of_bucket(std::get_if<Alloc>(&each)) || of_bucket(std::get_if<Fill>(&each))) continue;
        const std::vector<BufferId> now = touched_buffers(each);
        touched = std::ranges::find(now, bucket.buffer) != now.end();
        EXPECT_TRUE(touched || std::holds_alternative<Fill>(each) ||
                    std::holds_alternative<Alloc>(each))
            << to_string(each, program, network());
      }
      EXPECT_EQ(allocs, zero_gradients ? 1 : 0);
      EXPECT_EQ(frees, 0) << "it stays after the step";
    }
  }
}

TEST(Update, AccumulatedGradientsBecomeTheirMean) {
  const Program program = program_of({.step = StepKind::kTrain, .accumulated_steps = 4});
  const auto& scale =
      std::get<ScaleGradients>(program.instructions[places_of<ScaleGradients>(program).at(0)]);
  EXPECT_EQ(scale.factor, 0.25);
  EXPECT_EQ(scale.buffers.size(), program.buckets.size());
  EXPECT_TRUE(places_of<ScaleGradients>(program_of({.step = StepKind::kTrain})).empty());
}

/// What reductions receive is never more than what the largest receives.
TEST(Update, ReductionsQueueAndSmallOnesGoTogether) {
  const Program program = program_of({.step = StepKind::kGradient});
  std::vector<BufferId> in_flight;
  size_t most_in_flight = 0;
  int reductions = 0;
  int64_t largest = 0, all = 0;
  for (const Instruction& instruction : program.instructions) {
    if (const auto* start = std::get_if<StartReduce>(&instruction)) {
      in_flight.push_back(start->buffer);
      most_in_flight = std::max(most_in_flight, in_flight.size());
      ++reductions;
      if (start->received < 0) continue;
      const int64_t bytes = buffer_bytes(program.buffers[start->received], at::kFloat);
      largest = std::max(largest, bytes);
      all += bytes;
    }
    if (const auto* finish = std::get_if<FinishReduce>(&instruction))
      std::erase(in_flight, finish->buffer);
  }
  EXPECT_GT(reductions, 2);
  EXPECT_GE(most_in_flight, 2u);
  const int64_t forecast = simulate(program, at::kFloat).reduction_bytes;
  EXPECT_GE(forecast, largest);
  EXPECT_LE(forecast, largest + 4 * reductions + 8);  // halves are rounded up; and the loss
  EXPECT_LT(forecast, all);
}

/// Between two rounds of a reduction lies a product, as long as there is one left; several may go
/// on together.
TEST(Update, RoundsOfReductionsHaveKernelsToHideBehind) {
  const Program program = program_of({.step = StepKind::kGradient});
  std::map<int, int> posted, products;  // per channel
  int advances = 0;
  for (const Instruction& instruction : program.instructions) {
    if (const auto* run = std::get_if<tessera::Run>(&instruction))
      if (run->phase == Phase::kInputGradient || run->phase == Phase::kWeightGradient)
        for (auto& [channel, count] : products) ++count;
    if (const auto* start = std::get_if<StartReduce>(&instruction)) {
      posted[start->channel] = 1;
      products[start->channel] = 0;
    }
    if (const auto* advance = std::get_if<AdvanceReduce>(&instruction)) {
      EXPECT_GE(std::exchange(products.at(advance->channel), 0), 1);
      EXPECT_EQ(advance->round, posted.at(advance->channel)++);
      ++advances;
    }
    if (const auto* finish = std::get_if<FinishReduce>(&instruction)) {
      EXPECT_EQ(finish->posted, posted.at(finish->channel));
    }
  }
  EXPECT_GT(advances, 2);
}

TEST(Update, ALimitThatIsNoneIsRefused) {
  for (double bad : std::vector<double>{-1, NAN, INFINITY})
    expect_refusal([&] { program_of({.step = StepKind::kTrain, .clip_norm = bad}); },
                   "cannot be a limit; give one above 0, or 0 for none");
}

TEST(Update, StagesSumTheSquaresOfWhatOthersHold) {
  const Graph graph = network();
  Plan plan;
  plan.stages = {{}, {}};
  for (size_t id = 0; id < graph.nodes().size(); ++id)
    plan.stage_of[graph.nodes()[id].name] = id < graph.nodes().size() / 2 ? 0 : 1;
  const Lowered lowered = lower(graph, plan, {.step = StepKind::kTrain});
  std::vector<int> counted(graph.parameters().size(), 0);
  for (const Program& program : lowered.programs) {
    const auto& squares =
        std::get<SquareGradients>(program.instructions[places_of<SquareGradients>(program).at(0)]);
    for (const Square& square : squares.gradients) ++counted[square.index];
    const auto& last =
        std::get<FinishReduce>(program.instructions[places_of<FinishReduce>(program).back()]);
    EXPECT_EQ(last.buffer, squares.squares);
    EXPECT_EQ(last.members, (Members{0, 1}));
  }
  for (size_t id = 0; id < counted.size(); ++id)
    EXPECT_EQ(counted[id], graph.parameters()[id].role == ParameterRole::kTrainable) << id;
}

TEST(Update, EveryInstructionHasItsStream) {
  const Program program = program_of({.step = StepKind::kTrain});
  for (const Instruction& instruction : program.instructions) {
    const bool communicates = std::holds_alternative<StartTransfer>(instruction) ||
                              std::holds_alternative<FinishTransfer>(instruction) ||
                              std::holds_alternative<StartReduce>(instruction) ||
                              std::holds_alternative<AdvanceReduce>(instruction) ||
                              std::holds_alternative<FinishReduce>(instruction);
    const Stream expected = communicates                                ? Stream::kCommunication
                            : std::holds_alternative<Load>(instruction) ? Stream::kCopy
                                                                        : Stream::kCompute;
    EXPECT_EQ(stream_of(instruction), expected);
  }
  for (const Buffer& buffer : program.buffers) EXPECT_EQ(buffer.tier, Tier::kDevice);
}

/// Most of these weights are in the last layers, whose gradients come first: they have all of
/// backward to cross, as long as no round is waited for too early.
TEST(Update, ReductionsHideBehindTheRestOfBackward) {
  const Lowered lowered = lower(build_model("resnet18", {8, 3, 80, 80}), Plan{4, {1, 1}, {}},
                                {.step = StepKind::kTrain});
  RooflineRates rates;
  const double alone = make_timeline(lowered.programs, lowered.graph, Roofline(rates)).step_time;
  rates.message_bytes_per_second = 1e9;
  const double with_messages =
      make_timeline(lowered.programs, lowered.graph, Roofline(rates)).step_time;
  int64_t elements = 0;
  for (const Bucket& bucket : lowered.programs[0].buckets)
    elements += lowered.programs[0].buffers[bucket.buffer].box.volume();
  const double crossing = 2 * 3.0 / 4 * 4 * static_cast<double>(elements) / 1e9;
  EXPECT_GT(alone, 1.5 * crossing) << "there is enough to hide behind";
  EXPECT_LT(with_messages - alone, 0.2 * crossing);
}

}  // namespace
}  // namespace tessera::update_test

// What travels while other work is done, read off the program.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tessera/lower/channel_halves.h"
#include "tessera/lower/lower.h"
#include "tessera/lower/piece_parts.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/zoo/zoo.h"

namespace tessera::overlap_test {
namespace {

using tessera::Run;  // and not the test's

Box without(Box box, int axis, const Range& range) {
  box[axis] = range;
  return box;
}

/// What is left of some boxes without another.
std::vector<Box> subtract(const std::vector<Box>& boxes, const Box& other) {
  std::vector<Box> left;
  for (const Box& box : boxes)
    for (const Box& part : difference(box, other)) left.push_back(part);
  return left;
}

bool cover_once(const std::vector<Box>& parts, const Box& whole) {
  std::vector<Box> left{whole};
  int64_t volume = 0;
  for (const Box& part : parts) {
    left = subtract(left, part);
    volume += part.volume();
  }
  return left.empty() && volume == whole.volume();
}

TEST(PieceParts, CoverAPieceOnce) {
  std::mt19937_64 random(1);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    const int axes = static_cast<int>(draw(1, 4));
    Box piece;
    for (int axis = 0; axis < axes; ++axis) {
      const int64_t begin = draw(0, 5);
      piece.push_back({begin, begin + draw(1, 6)});
    }
    std::vector<Box> crossing;
    for (int64_t i = draw(0, 5); i > 0; --i) {
      crossing.emplace_back();
      for (int axis = 0; axis < axes; ++axis) {
        const int64_t begin = draw(piece[axis].begin, piece[axis].end - 1);
        crossing.back().push_back({begin, draw(begin + 1, piece[axis].end)});
      }
    }
    const PieceParts parts = split_piece(piece, crossing);
    std::vector<Box> all = parts.crossing;
    all.insert(all.end(), parts.rest.begin(), parts.rest.end());
    EXPECT_TRUE(cover_once(all, piece));
    for (const Box& rest : parts.rest)
      for (const Box& box : crossing) EXPECT_TRUE(intersect(rest, box).empty());
    if (parts.rest.empty()) {
      EXPECT_EQ(parts.crossing, std::vector<Box>{piece});
    }
    if (crossing.empty()) {
      EXPECT_EQ(parts.rest, std::vector<Box>{piece});
    }
  }
}

TEST(PieceParts, TwoSidesAndTheirCornerAreTwoBoxes) {
  const Box piece{{0, 1}, {0, 4}, {0, 8}, {0, 8}};
  const Box below = without(piece, 2, {7, 8}), right = without(piece, 3, {7, 8});
  const PieceParts parts = split_piece(piece, {intersect(below, right), right, below});
  EXPECT_EQ(parts.crossing, (std::vector<Box>{right, without(below, 3, {0, 7})}));
  EXPECT_EQ(parts.rest, (std::vector<Box>{{{0, 1}, {0, 4}, {0, 7}, {0, 7}}}));
}

// ---- Programs -----------------------------------------------------------------------------------

void add_pixel_loss(Graph& graph, ValueId x) {
  const ValueId logits = convolution(graph, x, "head", {3, {1}});
  graph.mark_output(logits);
  cross_entropy(graph, logits, add_target(graph, logits, "target"), "loss");
}

Graph conv_norm_relu_chain() {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 3, 32, 32}));
  for (const char* name : {"a", "b", "c"}) {
    x = convolution(graph, x, name, {4, {3}, {1}, {1}, {1}});
    x = batch_norm(graph, x, std::string(name) + ".norm");
    x = relu(graph, x, std::string(name) + ".relu");
  }
  add_pixel_loss(graph, x);
  return graph;
}

/// The places of the Runs of a phase of the node of this name.
std::vector<size_t> runs_of(const Lowered& lowered, const Program& program, const std::string& name,
                            Phase phase) {
  std::vector<size_t> places;
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (const auto* run = std::get_if<Run>(&program.instructions[i]);
        run && run->phase == phase && lowered.graph.node(run->node).name == name)
      places.push_back(i);
  return places;
}

/// The buffer of an argument; -1: it has none.
BufferId argument_of(const Run& run, Role role) {
  for (const Argument& argument : run.arguments)
    if (argument.role == role) return argument.view.buffer;
  return -1;
}

const Run& run_at(const Program& program, size_t place) {
  return std::get<Run>(program.instructions[place]);
}

struct Flight {
  size_t start = 0;
  size_t finish = 0;
};

/// Transfers of strips of this name, which the message to a peer ends.
std::vector<Flight> flights_of(const Program& program, const std::string& name) {
  std::vector<Flight> flights;
  std::map<int, size_t> open;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (const auto* start = std::get_if<StartTransfer>(&program.instructions[i])) {
      if (!start->sends.empty() &&
          program.buffers[start->sends[0].strip].name.rfind(name, 0) == 0) {
        open[start->channel] = flights.size();
        flights.push_back({i, 0});
      }
    } else if (const auto* finish = std::get_if<FinishTransfer>(&program.instructions[i])) {
      if (open.contains(finish->channel)) flights[open.at(finish->channel)].finish = i;
    }
  }
  return flights;
}

std::vector<Box> boxes_between(const Program& program, const std::vector<size_t>& places,
                               size_t begin, size_t end) {
  std::vector<Box> boxes;
  for (size_t place : places)
    if (place > begin && place < end) boxes.push_back(run_at(program, place).box);
  return boxes;
}

TEST(Overlap, TheNormWritesWhatOthersNeedFirstAndTheRestWhileItTravels) {
  const Lowered lowered = lower(conv_norm_relu_chain(), {1, {2, 2}, {}});
  for (const Program& program : lowered.programs) {
    SCOPED_TRACE(program.rank);
    for (const char* name : {"a.norm", "b.norm"}) {
      const std::vector<Flight> flights = flights_of(program, std::string(name) + " to");
      ASSERT_EQ(flights.size(), 1u);
      const auto [start, finish] = flights[0];
      const std::vector<size_t> runs = runs_of(lowered, program, name, Phase::kForward);
      const std::vector<Box> before = boxes_between(program, runs, 0, start);
      const std::vector<Box> during = boxes_between(program, runs, start, finish);
      ASSERT_EQ(before.size(), 3u);  // two of four channels, and two sides of a quarter
      ASSERT_EQ(during.size(), 1u);
      EXPECT_EQ(before[0].volume(), 2 * 16 * 16);
      EXPECT_EQ(before[1].volume() + before[2].volume(), 2 * (16 + 15));
      EXPECT_EQ(during[0].volume(), 2 * 15 * 15);
      // The convolution that reads it comes after.
      EXPECT_LT(finish, runs_of(lowered, program, name[0] == 'a' ? "b" : "c", Phase::kForward)[0]);
    }
    // Nobody else reads the last one, and what is computed again is not sent again.
    EXPECT_EQ(runs_of(lowered, program, "c.norm", Phase::kForward).size(), 2u);
    EXPECT_EQ(runs_of(lowered, program, "a.norm", Phase::kRecompute).size(), 1u);
  }
}

/// One half of the channels hides the other's statistics.
TEST(Overlap, StatisticsCrossBehindTheOtherHalfOfTheChannels) {
  const Lowered lowered = lower(conv_norm_relu_chain(), {1, {2, 1}, {}});
  for (const Program& program : lowered.programs) {
    SCOPED_TRACE(program.rank);
    const std::vector<Flight> flights = flights_of(program, "a.norm statistics");
    ASSERT_EQ(flights.size(), 2u);
    const std::vector<size_t> sums = runs_of(lowered, program, "a.norm", Phase::kPieceStatistics);
    const std::vector<size_t> applied = runs_of(lowered, program, "a.norm", Phase::kForward);
    const auto channels = [&](size_t place) { return run_at(program, place).box[1]; };
    ASSERT_EQ(sums.size(), 2u);
    EXPECT_EQ(channels(sums[0]), (Range{0, 2}));
    EXPECT_EQ(channels(sums[1]), (Range{2, 4}));
    EXPECT_GT(sums[1], flights[0].start);
    EXPECT_LT(sums[1], flights[0].finish);
    EXPECT_EQ(channels(applied[0]), (Range{0, 2}));
    EXPECT_GT(applied[0], flights[0].finish);
    EXPECT_GT(applied[0], flights[1].start);
    EXPECT_LT(applied[0], flights[1].finish);
    EXPECT_EQ(channels(applied[1]), (Range{2, 4}));
    EXPECT_GT(applied[1], flights[1].finish);
    // What the batch's statistics are in the end is of all channels.
    EXPECT_EQ(runs_of(lowered, program, "a.norm", Phase::kUpdateBuffers).size(), 1u);
  }
}

TEST(Overlap, ChannelsThatShareStatisticsStayTogether) {
  using Halves = std::vector<std::pair<Range, Range>>;
  const auto halves_of_first = [](const std::string& norm, const Plan& plan) {
    const Graph graph = build_model("unet2d:base=6,depth=2,norm=" + norm, {1, 3, 16, 16});
    const PlacedGraph placed = place(graph, plan);
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id)
      if (const auto halves = channel_halves(placed, id, 0)) return Halves{*halves};
    return Halves{};
  };
  const Plan two{1, {2, 1}, {}};
  EXPECT_EQ(halves_of_first("batch", two), (Halves{{{0, 3}, {3, 6}}}));
  EXPECT_EQ(halves_of_first("instance", two), (Halves{{{0, 3}, {3, 6}}}));
  EXPECT_EQ(halves_of_first("group,groups=2", two), (Halves{{{0, 3}, {3, 6}}}));
  const Halves thirds = halves_of_first("group,groups=3", two);
  ASSERT_EQ(thirds.size(), 1u);
  EXPECT_EQ(thirds[0].first.end % 2, 0);
  EXPECT_EQ(thirds[0].first.end, thirds[0].second.begin);
  EXPECT_TRUE(halves_of_first("group,groups=1", two).empty());
  EXPECT_TRUE(halves_of_first("none", two).empty());
  EXPECT_TRUE(halves_of_first("batch", {}).empty());  // nothing crosses
}

TEST(Overlap, TheNormWritesWhatOthersReadOfItsGradientFirst) {
  const Lowered lowered = lower(conv_norm_relu_chain(), {1, {2, 2}, {}});
  for (const Program& program : lowered.programs) {
    SCOPED_TRACE(program.rank);
    for (const char* name : {"b", "c"}) {
      const std::vector<Flight> flights = flights_of(program, std::string(name) + " gradient to");
      ASSERT_EQ(flights.size(), 1u);
      const auto [start, finish] = flights[0];
      const std::vector<size_t> runs =
          runs_of(lowered, program, std::string(name) + ".norm", Phase::kInputGradient);
      ASSERT_EQ(runs.size(), 3u);  // two sides of a quarter, and the rest
      const std::vector<Box> before = boxes_between(program, runs, 0, start);
      const std::vector<Box> during = boxes_between(program, runs, start, finish);
      ASSERT_EQ(before.size(), 2u);
      ASSERT_EQ(during.size(), 1u);
      EXPECT_EQ(before[0].volume() + before[1].volume(), 4 * (16 + 15));
      EXPECT_EQ(during[0].volume(), 4 * 15 * 15);
      EXPECT_LT(finish, runs_of(lowered, program, name, Phase::kInputGradient).at(0));
    }
    // Nobody asks for the image's gradient.
    EXPECT_TRUE(flights_of(program, "a gradient to").empty());
    EXPECT_EQ(runs_of(lowered, program, "a.norm", Phase::kInputGradient).size(), 1u);
  }
}

/// A product is not cut: its weight gradient hides the halo.
TEST(Overlap, AWeightGradientRunsWhileTheGradientOfTheLayerBeforeTravels) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 3, 32, 32}));
  for (const char* name : {"a", "b", "c"}) x = convolution(graph, x, name, {4, {3}, {1}, {1}, {1}});
  add_pixel_loss(graph, x);
  const Lowered lowered = lower(graph, {1, {2, 1}, {}});
  for (const Program& program : lowered.programs) {
    const std::vector<Flight> flights = flights_of(program, "b gradient to");
    ASSERT_EQ(flights.size(), 1u);
    EXPECT_LT(runs_of(lowered, program, "c", Phase::kInputGradient).at(0), flights[0].start);
    const size_t weights = runs_of(lowered, program, "c", Phase::kWeightGradient).at(0);
    EXPECT_GT(weights, flights[0].start);
    EXPECT_LT(weights, flights[0].finish);
  }
}

TEST(Overlap, StatisticsOfAGradientBeginWithWhatOthersAddNothingTo) {
  // A window with a stride gives back what it has for others; it reads one row above its own.
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 3, 32, 32}));
  x = batch_norm(graph, convolution(graph, x, "b", {4, {1}}), "b.norm");
  add_pixel_loss(graph, convolution(graph, x, "c", {4, {4}, {2}, {1}, {1}}));
  const Lowered lowered = lower(graph, {1, {2, 2}, {}});
  for (const Program& program : lowered.programs) {
    SCOPED_TRACE(program.rank);
    const std::vector<Flight> flights = flights_of(program, "b.norm gradient to");
    ASSERT_EQ(flights.size(), 1u);
    const std::vector<size_t> runs =
        runs_of(lowered, program, "b.norm", Phase::kPieceGradStatistics);
    const std::vector<Box> during =
        boxes_between(program, runs, flights[0].start, flights[0].finish);
    ASSERT_EQ(during.size(), 1u);
    EXPECT_EQ(during[0].volume(), 4 * 15 * 15);
    EXPECT_EQ(runs.size(), 3u);
    // The rows of the three parts are one row of the piece.
    EXPECT_EQ(runs_of(lowered, program, "b.norm", Phase::kCombineGradStatistics).size(), 2u);
  }
}

TEST(Overlap, TheNextWeightGradientRunsWhileStatisticsOfTheGradientCross) {
  const Lowered lowered = lower(conv_norm_relu_chain(), {1, {2, 1}, {}});
  for (const Program& program : lowered.programs)
    for (const auto& [norm, next] : {std::pair{"a.norm", "b"}, {"b.norm", "c"}}) {
      SCOPED_TRACE(norm);
      const std::vector<Flight> flights =
          flights_of(program, std::string(norm) + " gradient statistics");
      ASSERT_EQ(flights.size(), 1u);
      const std::vector<size_t> runs = runs_of(lowered, program, next, Phase::kWeightGradient);
      ASSERT_EQ(runs.size(), 1u);
      EXPECT_GT(runs[0], flights[0].start);
      EXPECT_LT(runs[0], flights[0].finish);
    }
}

/// What pooling saves belongs to a whole piece: it runs on that after what others need.
TEST(Overlap, AnOperatorThatSavesRunsOnTheWholePieceAfterWhatCrosses) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 3, 32, 32}));
  x = max_pool(graph, convolution(graph, x, "a", {4, {1}}), "pool", {{2}});
  add_pixel_loss(graph, convolution(graph, x, "b", {4, {3}, {1}, {1}, {1}}));
  const Lowered lowered = lower(graph, {1, {2, 1}, {}});
  const Program& program = lowered.programs[0];
  const std::vector<size_t> runs = runs_of(lowered, program, "pool", Phase::kForward);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(run_at(program, runs[0]).box, (Box{{0, 1}, {0, 4}, {7, 8}, {0, 16}}));
  EXPECT_EQ(run_at(program, runs[1]).box, (Box{{0, 1}, {0, 4}, {0, 8}, {0, 16}}));
  const tessera::Run& backward =
      run_at(program, runs_of(lowered, program, "pool", Phase::kInputGradient).at(0));
  const BufferId saved = argument_of(backward, Role::kSaved);
  EXPECT_EQ(saved, argument_of(run_at(program, runs[1]), Role::kSaved));
  EXPECT_NE(saved, argument_of(run_at(program, runs[0]), Role::kSaved));
}

TEST(Overlap, WhatCrossesWholeRunsOnce) {
  Plan plan;
  plan.stages = {{}, {}};
  const Graph graph = conv_norm_relu_chain();
  for (const Node& node : graph.nodes()) plan.stage_of[node.name] = node.name[0] == 'a' ? 0 : 1;
  const Lowered lowered = lower(graph, plan);
  EXPECT_EQ(runs_of(lowered, lowered.programs[0], "a.norm", Phase::kForward).size(), 1u);
}

/// Walks a program and requires that all that is sent has been written.
void check_sent_is_written(const Program& program) {
  std::map<BufferId, std::vector<Box>> unwritten;
  const auto wrote = [&](const View& view) {
    if (view.buffer >= 0) unwritten[view.buffer] = subtract(unwritten[view.buffer], view.box);
  };
  for (const Instruction& instruction : program.instructions) {
    if (const auto* alloc = std::get_if<Alloc>(&instruction))
      unwritten[alloc->buffer] = {program.buffers[alloc->buffer].box};
    if (const auto* fill = std::get_if<Fill>(&instruction))
      for (const Box& box : fill->boxes) wrote({fill->buffer, box});
    if (const auto* copy = std::get_if<Copy>(&instruction)) wrote(copy->to);
    if (const auto* load = std::get_if<Load>(&instruction)) wrote(load->to);
    if (const auto* run = std::get_if<Run>(&instruction))
      for (const Argument& argument : run->arguments)
        if (is_written(run->phase, argument.role)) wrote(argument.view);
    if (const auto* unpack = std::get_if<Unpack>(&instruction))
      for (const Message& message : unpack->messages)
        for (const Segment& segment : message.segments) wrote(segment.view);
    if (const auto* start = std::get_if<StartTransfer>(&instruction)) {
      for (const Message& message : start->receives)
        wrote({message.strip, program.buffers[message.strip].box});
      for (const Message& message : start->sends)
        for (const Segment& segment : message.segments)
          for (const Box& left : unwritten[segment.view.buffer])
            EXPECT_TRUE(intersect(left, segment.view.box).empty())
                << "rank " << program.rank << " sends what is not written of "
                << program.buffers[segment.view.buffer].name << ": " << to_string(left);
    }
  }
}

TEST(Overlap, WhatIsSentHasBeenWritten) {
  const auto check = [](const std::string& model, const Shape& input, const Plan& plan) {
    SCOPED_TRACE(model + " on " + to_string(plan));
    for (const Program& program : lower(build_model(model, input), plan).programs)
      check_sent_is_written(program);
  };
  check("unet2d:base=2,depth=3", {1, 3, 37, 32}, {1, {2, 2}, {}});
  check("unet2d:base=2,depth=3,norm=none", {1, 3, 37, 32}, {1, {1, 4}, {2, 1}});
  check("unet2d:base=2,depth=4", {2, 3, 24, 23}, {2, {3, 2}, {}});  // empty parts
  check("resnet18:classes=4", {2, 3, 64, 61}, {1, {2, 2}, {}});
  check("cnn3d:base=2,depth=2", {1, 1, 9, 8, 7}, {1, {2, 2, 2}, {}});
}

}  // namespace
}  // namespace tessera::overlap_test

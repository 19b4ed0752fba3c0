// Addresses of a step's buffers: none overlaps another that lives at the same time, and together
// they take hardly more than the most that lives at once.

#include "tessera/lower/arena.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "tessera/lower/lower.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tessera/simulate/simulator.h"
#include "tessera/zoo/zoo.h"

namespace tessera::arena_test {
namespace {

/// Walks the program and puts each buffer into its place, next to those that live there.
void expect_no_overlaps(const Program& program, const ArenaLayout& layout, at::ScalarType real) {
  std::map<int64_t, int64_t> live;  // begin to end
  for (const Instruction& instruction : program.instructions) {
    if (const auto* free = std::get_if<Free>(&instruction))
      live.erase(layout.offsets[free->buffer]);
    const auto* alloc = std::get_if<Alloc>(&instruction);
    if (alloc == nullptr) continue;
    const int64_t bytes = buffer_bytes(program.buffers[alloc->buffer], real);
    if (bytes == 0) continue;
    const int64_t begin = layout.offsets[alloc->buffer], end = begin + bytes;
    ASSERT_EQ(begin % ArenaLayout::kAlignment, 0);
    ASSERT_LE(end, layout.bytes);
    const auto after = live.lower_bound(begin);
    if (after != live.end()) {
      ASSERT_LE(end, after->first) << program.buffers[alloc->buffer].name;
    }
    if (after != live.begin()) {
      ASSERT_LE(std::prev(after)->second, begin) << program.buffers[alloc->buffer].name;
    }
    live[begin] = end;
  }
}

/// Of rank 0.
double arena_by_live_bytes(const Graph& graph, const Plan& plan, at::ScalarType real) {
  LowerOptions options;
  options.real = real;
  const Program program = Lowering(graph, plan, options).program(0);
  const ArenaLayout layout = lay_out(program, real);
  expect_no_overlaps(program, layout, real);
  return static_cast<double>(layout.bytes) /
         static_cast<double>(simulate(program, real).peak_value_bytes);
}

TEST(ArenaLayout, IsHardlyLargerThanWhatLives) {
  for (const ModelInfo& model : models()) {
    const Graph graph = build_model(model.name, model.default_input);
    EXPECT_LE(arena_by_live_bytes(graph, {}, at::kFloat), 1.05) << model.name;
  }
}

TEST(ArenaLayout, OfOtherSizesAndTypes) {
  struct Case {
    const char* model;
    Shape input;
  };
  for (const Case& each : std::vector<Case>{{"unet2d:base=8,norm=none", {2, 3, 256, 256}},
                                            {"unet3d:base=8,depth=3", {1, 1, 32, 32, 32}},
                                            {"resnet50", {4, 3, 96, 160}},
                                            {"fcn2d:width=0.25", {1, 3, 256, 256}}}) {
    const Graph graph = build_model(each.model, each.input);
    for (const at::ScalarType real : {at::kFloat, at::kDouble})
      EXPECT_LE(arena_by_live_bytes(graph, {}, real), 1.05) << each.model;
  }
}

Plan micro_batches(int64_t count) {
  Plan plan;
  plan.micro_batches = count;
  return plan;
}

TEST(ArenaLayout, OfGrids) {
  const Graph unet = build_model("unet2d:base=8,depth=4,norm=none", {4, 3, 128, 96});
  EXPECT_LE(arena_by_live_bytes(unet, {1, {2, 2}, {}}, at::kFloat), 1.05);
  EXPECT_LE(arena_by_live_bytes(build_model("unet2d:base=16,depth=4", {1, 3, 512, 384}),
                                {1, {2, 2}, {}}, at::kFloat),
            1.02);
  EXPECT_LE(arena_by_live_bytes(build_model("unet3d", {1, 1, 64, 64, 64}), {1, {2, 2, 1}, {}},
                                at::kFloat),
            1.03);
}

// Two steps in one, whose peaks do not come together.
TEST(ArenaLayout, OfMicroBatches) {
  const Graph unet = build_model("unet2d:base=8,depth=4,norm=none", {4, 3, 128, 96});
  EXPECT_LE(arena_by_live_bytes(unet, micro_batches(4), at::kFloat), 1.05);
  const Graph volumes = with_micro_batch_norm(build_model("unet3d", {4, 1, 64, 64, 64}), 2);
  EXPECT_LE(arena_by_live_bytes(volumes, micro_batches(2), at::kFloat), 1.02);
}

TEST(ArenaLayout, OfNothingIsEmpty) {
  const ArenaLayout layout = lay_out(Program(), at::kFloat);
  EXPECT_EQ(layout.bytes, 0);
  EXPECT_TRUE(layout.offsets.empty());
}

}  // namespace
}  // namespace tessera::arena_test

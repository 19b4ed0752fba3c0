#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tests/unit/checkpoint/example_state.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::checkpoint_store_test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

void fail_on_warning(const std::string& text) { ADD_FAILURE() << text; }

TEST(CheckpointName, HasOneSpelling) {
  EXPECT_EQ(to_string(CheckpointName{123, 0}), "step-000123");
  EXPECT_EQ(to_string(CheckpointName{12345678, 2}), "step-12345678.2");
  for (const char* text : {"step-000000", "step-000123", "step-12345678", "step-000001.1"}) {
    const auto name = parse_checkpoint_name(text);
    ASSERT_TRUE(name) << text;
    EXPECT_EQ(to_string(*name), text);
  }
  for (const char* text : {"", "step-", "step-1", "step-0000123", "step--00001", "step-+00001",
                           "step-000001.", "step-000001.0", "step-000001.01", "step-000001.-1",
                           "step-000001x", "step-99999999999999999999", "Step-000001", "latest"})
    EXPECT_FALSE(parse_checkpoint_name(text)) << text;
}

TEST(CheckpointStore, GivesBackWhatItGot) {
  const ScratchFolder folder;
  CheckpointStore store(folder.file("run/checkpoints"), 2, fail_on_warning);
  EXPECT_FALSE(store.latest_valid());
  EXPECT_FALSE(store.best());
  const TrainingState state = example_state(123);
  EXPECT_EQ(store.save(state, false), folder.file("run/checkpoints/step-000123"));
  EXPECT_EQ(names_in(folder.file("run/checkpoints/step-000123")),
            (Names{"state.json", "tensors.safetensors"}));
  const TrainingState loaded = store.load(*store.latest_valid());
  EXPECT_TRUE(same_state(loaded, state));
  const auto model = tensors_under(loaded, "model.");
  EXPECT_EQ(model.size(), 2u);
  EXPECT_EQ(model.at("conv.weight").numel(), 6);
}

TEST(CheckpointStore, KeepsOddNumbers) {
  const ScratchFolder folder;
  CheckpointStore store(folder.path(), 1, fail_on_warning);
  const double infinity = std::numeric_limits<double>::infinity();
  for (double metric : {infinity, -infinity, -0.0, 0.1, 5e-324, 1.7976931348623157e308}) {
    TrainingState state = example_state(0);
    state.best_metric = metric;
    state.seed = std::numeric_limits<uint64_t>::max();
    state.epoch = std::numeric_limits<int64_t>::max();
    EXPECT_TRUE(same_state(store.load(store.save(state, false)), state)) << metric;
  }
  TrainingState state = example_state(0);
  state.best_metric = std::nan("");
  EXPECT_TRUE(std::isnan(store.load(store.save(state, false)).best_metric));
}

TEST(CheckpointStore, KeepsTheLastAndTheBest) {
  const ScratchFolder folder;
  CheckpointStore store(folder.path(), 2, fail_on_warning);
  for (int64_t step : {1, 2, 3, 4, 5}) store.save(example_state(step), step == 2);
  EXPECT_EQ(names_in(folder.path()), (Names{"best", "step-000002", "step-000004", "step-000005"}));
  EXPECT_EQ(fs::read_symlink(folder.file("best")), "step-000002");
  EXPECT_EQ(store.best(), folder.file("step-000002"));
  EXPECT_EQ(store.latest_valid(), folder.file("step-000005"));
  store.save(example_state(6), true);
  EXPECT_EQ(names_in(folder.path()), (Names{"best", "step-000005", "step-000006"}));
  EXPECT_EQ(fs::read_symlink(folder.file("best")), "step-000006");
  for (int64_t step : {7, 8, 999999, 1000000}) store.save(example_state(step), false);
  EXPECT_EQ(names_in(folder.path()), (Names{"best", "step-000006", "step-1000000", "step-999999"}));
  EXPECT_EQ(store.best(), folder.file("step-000006"));
  EXPECT_EQ(store.latest_valid(), folder.file("step-1000000"));
}

TEST(BestLink, IsMendedWhenTheFolderIsTaken) {
  const ScratchFolder folder;
  CheckpointStore(folder.path(), 2).save(example_state(1), true);
  CheckpointStore(folder.path(), 2).save(example_state(2), true);
  // A run that was killed between the checkpoint and the link, or in the middle of the link.
  fs::remove(folder.file("best"));
  fs::create_symlink("step-000001", folder.file("best"));
  fs::create_symlink("step-000002", folder.file(".writing-best"));
  CheckpointStore(folder.path(), 2).claim();
  EXPECT_EQ(names_in(folder.path()), (Names{"best", "step-000001", "step-000002"}));
  EXPECT_EQ(fs::read_symlink(folder.file("best")), "step-000002");
  // One of an earlier version has none.
  fs::remove(folder.file("best"));
  EXPECT_EQ(CheckpointStore(folder.path(), 2).best(), folder.file("step-000002"));
  CheckpointStore(folder.path(), 2).save(example_state(3), false);
  EXPECT_EQ(fs::read_symlink(folder.file("best")), "step-000002");
}

TEST(BestLink, DoesNotLeadAstray) {
  const ScratchFolder folder;
  CheckpointStore store(folder.path(), 1, fail_on_warning);
  for (int64_t step : {1, 2}) store.save(example_state(step), step == 1);
  for (const char* target : {"step-000009", "/tmp", "best", "step-000002"}) {
    fs::remove(folder.file("best"));
    fs::create_symlink(target, folder.file("best"));
    EXPECT_EQ(store.best(), folder.file("step-000001")) << target;
  }
  // The best is replaced by a checkpoint of the same step that is not.
  store.save(example_state(1), false);
  EXPECT_FALSE(store.best());
  EXPECT_FALSE(fs::is_symlink(folder.file("best")));
}

// A run goes back to its step 100 and abandons a better one at 200. What it saves next must not
// take the other's word and remove its own best.
TEST(BestLink, OfAnAbandonedStepDoesNotCostARunItsBest) {
  const ScratchFolder folder;
  for (int64_t step : {100, 200}) CheckpointStore(folder.path(), 2).save(example_state(step), true);
  CheckpointStore resumed(folder.path(), 1, fail_on_warning);
  resumed.save(example_state(150), false);
  EXPECT_EQ(names_in(folder.path()), (Names{"best", "step-000100", "step-000150", "step-000200"}));
  EXPECT_EQ(fs::read_symlink(folder.file("best")), "step-000100");
  EXPECT_EQ(resumed.best(), folder.file("step-000100"));
  // Nor once it has passed the step.
  resumed.save(example_state(250), false);
  EXPECT_EQ(names_in(folder.path()), (Names{"best", "step-000100", "step-000250"}));
}

TEST(BestLink, LeavesWhatIsNotALink) {
  const ScratchFolder folder;
  write_bytes(folder.file("best"), "somebody else's");
  std::vector<std::string> warnings;
  CheckpointStore store(folder.path(), 1,
                        [&](const std::string& text) { warnings.push_back(text); });
  store.save(example_state(1), true);
  EXPECT_EQ(read_bytes(folder.file("best")), "somebody else's");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("is not a link; move it away"), std::string::npos) << warnings[0];
  EXPECT_EQ(store.best(), folder.file("step-000001"));
}

TEST(CheckpointStore, ReplacesOneOfTheSameStep) {
  const ScratchFolder folder;
  CheckpointStore store(folder.path(), 2, fail_on_warning);
  store.save(example_state(1), false);
  store.save(example_state(2), false);
  TrainingState again = example_state(2);
  again.metadata["run"] = "second";
  EXPECT_EQ(store.save(again, false), folder.file("step-000002"));
  EXPECT_EQ(names_in(folder.path()), (Names{"step-000001", "step-000002"}));
  EXPECT_TRUE(same_state(store.load(folder.file("step-000002")), again));
}

// A killed run may stop between any two of the renames by which a checkpoint is replaced.
TEST(CheckpointStore, ReadsTheNewerRevision) {
  const ScratchFolder folder;
  CheckpointStore store(folder.path(), 2, fail_on_warning);
  TrainingState again = example_state(1);
  again.metadata["run"] = "second";
  fs::rename(store.save(again, false), folder.file("step-000001.1"));
  EXPECT_EQ(store.latest_valid(), folder.file("step-000001.1"));
  store.save(example_state(1), false);
  EXPECT_EQ(names_in(folder.path()), Names{"step-000001"});
  fs::rename(folder.file("step-000001"), folder.file("aside"));
  fs::rename(store.save(again, false), folder.file("step-000001.1"));
  fs::rename(folder.file("aside"), folder.file("step-000001"));
  EXPECT_TRUE(same_state(store.load(*store.latest_valid()), again));
}

TEST(CheckpointStore, FinishesAReplacementUnlessItWouldHarm) {
  const ScratchFolder folder;
  TrainingState again = example_state(1);
  again.metadata["run"] = "second";
  const auto copy = fs::copy_options::recursive;
  CheckpointStore(folder.path(), 2).save(example_state(1), false);
  fs::copy(folder.file("step-000001"), folder.file("step-000001.2"), copy);
  write_bytes(folder.file("step-000001.2/state.json"), "damaged");
  CheckpointStore(folder.path(), 2, [](const std::string&) {}).claim();
  EXPECT_EQ(names_in(folder.path()), (Names{"step-000001", "step-000001.2"}));

  const ScratchFolder other;
  fs::copy(CheckpointStore(other.path(), 2).save(again, false), folder.file("step-000001.1"), copy);
  CheckpointStore store(folder.path(), 2, [](const std::string&) {});
  store.claim();
  EXPECT_EQ(names_in(folder.path()), Names{"step-000001"});
  EXPECT_TRUE(same_state(store.load(folder.file("step-000001")), again));
}

// A run that went back to an older checkpoint must not lose the new ones to those that lie ahead.
TEST(CheckpointStore, LeavesHigherStepsUntilTheyArePassed) {
  const ScratchFolder folder;
  CheckpointStore store(folder.path(), 2, fail_on_warning);
  for (int64_t step : {10, 20}) store.save(example_state(step), step == 20);
  for (int64_t step : {11, 12, 13}) store.save(example_state(step), false);
  EXPECT_EQ(names_in(folder.path()), (Names{"best", "step-000012", "step-000013", "step-000020"}));
  for (int64_t step : {21, 22}) store.save(example_state(step), true);
  EXPECT_EQ(names_in(folder.path()), (Names{"best", "step-000021", "step-000022"}));
}

TEST(CheckpointStore, RemovesWhatAKilledRunLeftAndNothingElse) {
  const ScratchFolder folder;
  for (const char* name :
       {".writing-step-000007", ".removing-step-000001.1", "notes", "step-000002"}) {
    fs::create_directory(folder.file(name));
    write_bytes(folder.file(fmt::format("{}/thesis.txt", name)), "a year of work");
  }
  write_bytes(folder.file("step-000003"), "a file");
  std::vector<std::string> warnings;
  CheckpointStore store(folder.path(), 1,
                        [&](const std::string& text) { warnings.push_back(text); });
  EXPECT_FALSE(store.latest_valid());
  EXPECT_EQ(names_in(folder.path()).size(), 5u) << "reading removes nothing";
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(has(warnings[1], "step-000002 cannot be used: it is not a checkpoint of Tessera"));
  store.claim();
  EXPECT_EQ(names_in(folder.path()), (Names{"notes", "step-000002", "step-000003"}));
  EXPECT_EQ(store.save(example_state(3), false), folder.file("step-000003.1"));
  store.save(example_state(4), false);
  EXPECT_EQ(names_in(folder.path()), (Names{"notes", "step-000002", "step-000003", "step-000004"}));
}

TEST(CheckpointStore, BelongsToOneRun) {
  const ScratchFolder folder;
  {
    CheckpointStore first(folder.path(), 1, fail_on_warning);
    CheckpointStore second(folder.path(), 1, fail_on_warning);
    first.save(example_state(1), false);
    EXPECT_TRUE(has(refusal([&] { second.save(example_state(2), false); }), "another run"));
    EXPECT_TRUE(same_state(second.load(*second.latest_valid()), example_state(1)));
  }
  CheckpointStore(folder.path(), 1, fail_on_warning).save(example_state(2), false);
}

/// The lock went with the old folder: without a look at the new one, two runs would write to it.
TEST(CheckpointStore, DoesNotFollowItsNameToAnotherFolder) {
  const ScratchFolder scratch;
  const std::string folder = scratch.file("checkpoints");
  CheckpointStore first(folder, 1, fail_on_warning);
  first.save(example_state(1), false);
  fs::rename(folder, scratch.file("moved"));
  EXPECT_TRUE(has(refusal([&] { first.save(example_state(2), false); }),
                  "step 2 is not saved: " + folder + " was removed or replaced"));
  CheckpointStore second(folder, 1, fail_on_warning);
  second.save(example_state(7), false);
  fs::create_directory(scratch.file("checkpoints/.writing-step-000002"));
  EXPECT_TRUE(has(refusal([&] { first.save(example_state(2), false); }), "removed or replaced"));
  EXPECT_EQ(names_in(folder), (Names{".writing-step-000002", "step-000007"}));
  EXPECT_EQ(names_in(scratch.file("moved")), (Names{"step-000001"}));
}

TEST(CheckpointStore, RefusesItsArguments) {
  const ScratchFolder folder;
  EXPECT_TRUE(has(refusal([&] { CheckpointStore(folder.path(), 0); }), "at least 1"));
  EXPECT_TRUE(has(refusal([&] { CheckpointStore("", 1); }), "no name"));
  write_bytes(folder.file("f"), "x");
  CheckpointStore below(folder.file("f/checkpoints"), 1);
  EXPECT_TRUE(has(refusal([&] { below.claim(); }), folder.file("f/checkpoints")));
  CheckpointStore file(folder.file("f"), 1);
  EXPECT_TRUE(has(refusal([&] { file.latest_valid(); }), "Not a directory"));
  CheckpointStore store(folder.path(), 1);
  EXPECT_TRUE(has(refusal([&] { store.load(folder.file("none")); }), "no such folder"));
  TrainingState state = example_state(1);
  state.metadata["bad"] = "\xff";
  EXPECT_TRUE(has(refusal([&] { store.save(state, false); }), "step 1 is not saved"));
  EXPECT_EQ(names_in(folder.path()), Names{"f"});
}

TEST(CheckFits, ListsTheDifferences) {
  Graph graph;
  graph.add_parameter({"conv.weight", {6}, ParameterRole::kTrainable, {}});
  graph.add_parameter({"norm.mean", {2}, ParameterRole::kBuffer, {}});
  check_fits(graph, example_state(5), "runs/c");
  graph.add_parameter({"head.bias", {3}, ParameterRole::kTrainable, {}});
  const std::string missing = refusal([&] { check_fits(graph, example_state(5), "runs/c"); });
  EXPECT_TRUE(has(missing, "runs/c does not fit")) << missing;
  EXPECT_TRUE(has(missing, "head.bias (3) is missing")) << missing;
  Graph other;
  other.add_parameter({"conv.weight", {2, 3}, ParameterRole::kTrainable, {}});
  const std::string message = refusal([&] { check_fits(other, example_state(5), "runs/c"); });
  EXPECT_TRUE(has(message, "conv.weight is 6 there, the model has 2x3")) << message;
  EXPECT_TRUE(has(message, "norm.mean (2) is not in the model")) << message;
}

}  // namespace
}  // namespace tessera::checkpoint_store_test

// The training configuration: layers, one table for file and command line, and what is refused.

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "tessera/config/config_layer.h"
#include "tessera/train/configured.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::config_test {
namespace {

TrainConfig from_file(const std::string& toml) {
  TrainConfig config;
  apply_layer(config, parse_config(toml, "run.toml"));
  return config;
}

TrainConfig with_model() {
  TrainConfig config;
  config.model = "unet2d";
  return config;
}

void expect_file_refused(const std::string& toml, const std::string& part) {
  SCOPED_TRACE(toml);
  expect_refusal([&] { from_file(toml); }, part);
}

void expect_unresolved(const std::function<void(TrainConfig&)>& change, const std::string& part) {
  TrainConfig config = with_model();
  change(config);
  expect_refusal([&] { resolved(config); }, part);
}

TEST(Config, ReadsAFile) {
  const TrainConfig config = from_file(R"(
[model]
name = "unet2d:base=8"
input = [2, 3, 64, 96]
[data]
source = 'npy:images.npy,targets.npy'
validation_fraction = 0
[train]
steps = 1_000
seed = 7
[optimiser]
learning_rate = 1
nesterov = true
[placement]
data = 2
space = "2x2"
pieces = 4
[run]
timeout_seconds = 2.5
)");
  EXPECT_EQ(config.model, "unet2d:base=8");
  EXPECT_EQ(config.input, "2x3x64x96");
  EXPECT_EQ(config.data, "npy:images.npy,targets.npy");
  EXPECT_EQ(config.validation_fraction, 0);
  EXPECT_EQ(config.steps, 1000);
  EXPECT_EQ(config.seed, 7u);
  EXPECT_EQ(config.learning_rate, 1.0);
  EXPECT_TRUE(config.nesterov);
  EXPECT_EQ(config.replicas, 2);
  EXPECT_EQ(config.space, "2x2");
  EXPECT_EQ(config.pieces, "4");
  EXPECT_EQ(config.timeout_seconds, 2.5);
  EXPECT_EQ(config.momentum, 0.9) << "what is not given keeps its default";
}

TEST(Config, ReadsAPipeline) {
  const TrainConfig config = from_file(R"(
[placement]
stages = 3
space = ["2x2", "1x2", "1x1"]
micro_batches = 8
schedule = "interleaved"
pipeline_costs = "flops"
domains = 2
chunks = 4
balance = "memory"
norm = "micro-batch"
)");
  EXPECT_EQ(config.stages, 3);
  EXPECT_EQ(config.space, "2x2,1x2,1x1");
  EXPECT_EQ(config.micro_batches, 8);
  EXPECT_EQ(config.pipeline_schedule, "interleaved");
  EXPECT_EQ(config.pipeline_costs, "flops");
  EXPECT_EQ(config.domains, 2);
  EXPECT_EQ(config.chunks, 4);
  EXPECT_EQ(config.balance, "memory");
  EXPECT_EQ(config.norm, "micro-batch");
  EXPECT_EQ(from_file("[placement]\nspace = '2x2,1x1'").space, "2x2,1x1");
  EXPECT_EQ(from_file("[placement]\nspace = [2, 1]").space, "2x1");
  EXPECT_EQ(from_file("[placement]\nspace = 2").space, "2");
}

TEST(Config, TheCommandLineOverridesTheFile) {
  TrainConfig config = from_file("[train]\nepochs = 5\nseed = 3\n[placement]\nspace = '2x2'\n");
  apply_layer(config, {config_option("--seed", "4"), config_option("--steps", "100"),
                       config_option("--plan", "plan.json")});
  EXPECT_EQ(config.seed, 4u);
  EXPECT_EQ(config.steps, 100);
  EXPECT_FALSE(config.epochs) << "--steps replaces the file's epochs";
  EXPECT_EQ(config.space, "") << "--plan replaces the file's grid";
  apply_layer(config, {config_option("--epochs", "2")});
  EXPECT_EQ(config.epochs, 2);
  EXPECT_FALSE(config.steps);
}

TEST(Config, OneLayerCannotHoldWhatExcludesItself) {
  expect_file_refused("[train]\nepochs = 5\nsteps = 10",
                      "run.toml:3:9: [train] steps excludes run.toml:2:10: [train] epochs");
  TrainConfig config;
  expect_refusal(
      [&] {
        apply_layer(config, {config_option("--steps", "1"), config_option("--epochs", "1")});
      },
      "[--epochs] excludes [--steps]");
  expect_refusal(
      [&] {
        apply_layer(config, {config_option("--seed", "1"), config_option("--seed", "2")});
      },
      "[--seed] is given twice");
  EXPECT_EQ(config, TrainConfig()) << "nothing of a refused layer may stay";
}

TEST(Config, ErrorsOfTheFileSayWhereAndWhatIsLegal) {
  expect_file_refused(
      "[train]\nepoch = 5",
      "run.toml:2:1: [train] has no key epoch (did you mean epochs?); known: epochs, steps,");
  expect_file_refused("[training]\nx = 5",
                      "run.toml:2:1: the table [training] is not known (did you mean [train]?); "
                      "known: [model], [data], "
                      "[train], [optimiser], [schedule], [placement], [run]");
  expect_file_refused("steps = 5", "run.toml:1:1: steps is in no table");
  expect_file_refused("[train]\nsteps = 0",
                      "run.toml:2:9: [train] steps 0 must be in [1, 1099511627776]");
  expect_file_refused("[train]\nsteps = 1.5",
                      "[train] steps is of the wrong type; give a whole number");
  expect_file_refused("[train]\nsteps = '10'", "give a whole number");
  expect_file_refused("[train]\nsteps = [1]", "is an array; give a single value");
  expect_file_refused("[optimiser]\nnesterov = 1", "give true or false");
  expect_file_refused("[optimiser]\nname = 'adamax'",
                      "\"adamax\" is not known; use one of sgd, adam, adamw");
  expect_file_refused("[optimiser]\nlearning_rate = -0.1", "-0.1 must be at least 0");
  expect_file_refused("[data]\nvalidation_fraction = 1", "1 must be in [0, 1)");
  expect_file_refused("[run]\ntimeout_seconds = 0", "0 must be above 0");
  expect_file_refused("[placement]\nspace = '2x'", "\"2x\" is not a list of sizes");
  expect_file_refused("[placement]\nspace = [2, 0]", "\"2x0\" is not a list of sizes");
  expect_file_refused("[placement]\nspace = [2, 'a']", "holds something else than whole numbers");
  expect_file_refused("[placement]\nspace = -1", "\"-1\" is not a list of sizes");
  for (const char* grids : {"2x2,", ",2x2", "2x2,,1", "2x2,0x1", "2x2;1x1"})
    expect_file_refused(fmt::format("[placement]\nspace = '{}'", grids),
                        fmt::format("\"{}\" is not a list of sizes", grids));
  expect_file_refused("[placement]\npieces = '2x2,1x1'", "is not a list of sizes");
  expect_file_refused("[placement]\nschedule = '2f2b'",
                      "use one of sequential, gpipe, 1f1b, interleaved, zero-bubble, gems");
  expect_file_refused("[placement]\nstages = 0", "0 must be in [1, 4096]");
  expect_file_refused("[placement]\nstages = 2\nplan = 'p.json'", "excludes");
}

TEST(Config, ErrorsOfTheCommandLineNameTheOption) {
  const auto with = [](const char* option, const char* text) {
    return [=] { config_option(option, text); };
  };
  expect_refusal(with("--steps", "ten"), "[--steps] \"ten\" is not a whole number");
  expect_refusal(with("--steps", "10x"), "[--steps] \"10x\" is not a whole number");
  expect_refusal(with("--steps", ""), "[--steps] \"\" is not a whole number");
  expect_refusal(with("--steps", "99999999999999999999"), "out of range");
  expect_refusal(with("--learning-rate", "fast"), "[--learning-rate] \"fast\" is not a number");
  expect_refusal(with("--learning-rate", "nan"), "[--learning-rate] nan must be at least 0");
  expect_refusal(with("--learning-rate", "inf"), "[--learning-rate] inf must be at least 0");
  expect_refusal(with("--nesterov", "yes"), "[--nesterov] \"yes\" is not true or false");
  expect_refusal(with("--seed", "-1"), "[--seed] -1 must be at least 0");
  expect_refusal(with("--on-nan", "ignore"), "use one of stop, skip");
}

TEST(Config, DefaultsDependOnTheOptimiser) {
  TrainConfig config = resolved(with_model());
  EXPECT_EQ(config.epochs, 10);
  EXPECT_EQ(config.learning_rate, 0.01);
  EXPECT_EQ(config.weight_decay, 0.0);
  EXPECT_EQ(resolved(config), config);
  config = with_model();
  config.optimiser = "adamw";
  config.steps = 5;
  EXPECT_EQ(resolved(config).learning_rate, 0.001);
  EXPECT_EQ(resolved(config).weight_decay, 0.01);
  EXPECT_FALSE(resolved(config).epochs);
  config.optimiser = "adam";
  EXPECT_EQ(resolved(config).learning_rate, 0.001);
  EXPECT_EQ(resolved(config).weight_decay, 0.0);
  EXPECT_EQ(resolved(config).gamma, 0.1);
  config.schedule = "exponential";
  EXPECT_EQ(resolved(config).gamma, 0.95);
}

TEST(Config, ResolvingChecksEverything) {
  expect_refusal([] { resolved(TrainConfig()); }, "[MODEL] no model is given");
  expect_unresolved([](TrainConfig& c) { c.learning_rate = -1; }, "[--learning-rate] -1 must be");
  expect_unresolved([](TrainConfig& c) { c.epochs = 0; },
                    "[--epochs] 0 must be in [1, 1099511627776]");
  expect_unresolved([](TrainConfig& c) { c.epochs = c.steps = 2; }, "exclude each other");
  expect_unresolved([](TrainConfig& c) { c.validation_fraction = -0.1; }, "must be in [0, 1)");
  expect_unresolved([](TrainConfig& c) { c.clip_norm = std::numeric_limits<double>::quiet_NaN(); },
                    "[--clip-norm] nan");
  expect_unresolved([](TrainConfig& c) { c.optimiser = "lbfgs"; }, "use one of sgd, adam, adamw");
  expect_unresolved([](TrainConfig& c) { c.nesterov = true, c.momentum = 0; }, "needs momentum");
  expect_unresolved([](TrainConfig& c) { c.steps = 5, c.warmup_steps = 5; }, "use at most 4");
  expect_unresolved([](TrainConfig& c) { c.patience = 2, c.validation_fraction = 0; },
                    "[--patience] 2 needs validation");
  expect_unresolved([](TrainConfig& c) { c.schedule = "cosine", c.min_learning_rate = 1; },
                    "[--min-learning-rate] 1 is more than the learning rate 0.01");
  expect_unresolved([](TrainConfig& c) { c.schedule = "plateau", c.validation_fraction = 0; },
                    "plateau needs validation");
  expect_unresolved([](TrainConfig& c) { c.schedule = "plateau", c.gamma = 1; },
                    "[--gamma] 1 does not lower the learning rate");
  expect_unresolved([](TrainConfig& c) { c.skip_mismatched = true; },
                    "[--skip-mismatched] is about the file of --init-weights");
  expect_unresolved([](TrainConfig& c) { c.ema = 1; }, "[--ema] 1 must be in [0, 1)");
  expect_unresolved([](TrainConfig& c) { c.threads = 0; }, "[--threads] 0 must be in [1, 256]");
}

TEST(Config, TheTableIsSound) {
  std::set<std::string> options, names;
  const TrainConfig defaults;
  for (const ConfigKey& key : config_keys()) {
    EXPECT_TRUE(options.insert(key.option).second) << key.option;
    EXPECT_TRUE(names.insert(fmt::format("{}.{}", key.table, key.name)).second) << key.name;
    EXPECT_FALSE(key.help.empty()) << key.option;
    EXPECT_NO_THROW(check(key, key.get(defaults), key.option));
    for (const std::string& excluded : key.excludes) {
      const std::vector<std::string>& back = config_key(excluded).excludes;
      EXPECT_NE(std::find(back.begin(), back.end(), key.option), back.end()) << key.option;
    }
  }
}

/// Every key, given another value, must come back from where it was set, and change nothing else.
TEST(Config, EveryKeyReachesAMemberOfItsOwn) {
  const std::map<std::string, std::string> texts{
      {"--domains", "2"},    {"--validation-fraction", "0.25"},
      {"--momentum", "0.5"}, {"--beta1", "0.5"},
      {"--beta2", "0.5"},    {"--pct-start", "0.5"},
      {"--ema", "0.5"},      {"--plateau-threshold", "0.5"}};
  const TrainConfig defaults;
  for (const ConfigKey& key : config_keys()) {
    SCOPED_TRACE(key.option);
    std::string text = key.type == ConfigType::kFlag ? "true" : "7";
    if (!key.choices.empty()) text = key.choices.back();
    if (texts.count(key.option)) text = texts.at(key.option);
    TrainConfig config;
    apply_layer(config, {config_option(key.option, text)});
    EXPECT_NE(config, defaults);
    const ConfigValue value = key.get(config);
    EXPECT_EQ(value, config_option(key.option, text).value);
    key.set(config, key.get(defaults));
    EXPECT_EQ(config, defaults);
  }
}

TEST(Config, JsonHoldsEveryKey) {
  const nlohmann::json json = nlohmann::json::parse(to_json(with_model()));
  size_t count = 0;
  for (const auto& table : json) count += table.size();
  EXPECT_EQ(count, config_keys().size());
  EXPECT_EQ(json["model"]["name"], "unet2d");
  EXPECT_EQ(json["optimiser"]["momentum"], 0.9);
  EXPECT_EQ(json["optimiser"]["nesterov"], false);
  EXPECT_TRUE(json["train"]["steps"].is_null());
}

/// Only what gives a run its numbers: how long it goes on, where, and what it shows may change.
TEST(ChangedSettings, AreThoseThatChangeTheNumbers) {
  const TrainConfig before = resolved(with_model());
  const auto changes = [&](const std::string& option, const std::string& text) {
    TrainConfig now = before;
    apply_layer(now, {config_option(option, text)});
    return changed_settings(to_json(before), now);
  };
  using Changes = std::vector<std::string>;
  EXPECT_EQ(changes("--learning-rate", "0.1"), (Changes{"--learning-rate was 0.01, is 0.1"}));
  EXPECT_EQ(changes("--loss", "dice"), (Changes{"--loss was the default, is \"dice\""}));
  EXPECT_EQ(changes("MODEL", "vnet"), (Changes{"MODEL was \"unet2d\", is \"vnet\""}));
  for (const char* option : {"--data", "--input", "--init-weights", "--seed", "--batch", "--gamma",
                             "--accumulation", "--clip-norm", "--warmup-steps", "--channels-last"})
    EXPECT_EQ(changes(option, option == std::string("--channels-last") ? "true" : "3").size(), 1u)
        << option;
  for (const char* option :
       {"--epochs", "--steps", "--replicas", "--space", "--workers", "--stages", "--pieces",
        "--micro-batches", "--threads", "--keep", "--run", "--checkpoint-interval",
        "--log-interval", "--timeout", "--memory", "--patience", "--save-weights", "--layers"})
    EXPECT_TRUE(changes(option, "3").empty()) << option;
  EXPECT_EQ(changes("--multigrid", "levels=3").size(), 1u);
  EXPECT_EQ(changes("--check-serial", "3").size(), 1u);  // it may add V-cycles
  EXPECT_TRUE(changes("--launch", "mpi").empty());
  EXPECT_TRUE(changes("--bind", "off").empty());
  EXPECT_TRUE(changes("--on-nan", "skip").empty());
  EXPECT_TRUE(changes("--label-check", "none").empty());
}

/// Micro-batches are a part of the network where batch norm goes by them, and only there.
TEST(ChangedSettings, MicroBatchesCountWhereNormsGoByThem) {
  TrainConfig before = with_model(), now = with_model();
  now.micro_batches = 4;
  EXPECT_TRUE(changed_settings(to_json(before), now).empty());
  before.norm = now.norm = "micro-batch";
  EXPECT_EQ(changed_settings(to_json(before), now).size(), 1u);
  before.norm = "batch";
  EXPECT_EQ(changed_settings(to_json(before), now).size(), 2u);
  now.norm = "batch";
  before.norm = "micro-batch";
  EXPECT_EQ(changed_settings(to_json(before), now).size(), 2u);
}

TEST(ChangedSettings, WhatWasNotWrittenIsTheDefault) {
  TrainConfig now;
  EXPECT_TRUE(changed_settings("{}", now).empty());
  EXPECT_TRUE(changed_settings(R"({"data": 7, "train": []})", now).empty());
  now.channels_last = true;
  EXPECT_EQ(changed_settings("{}", now).size(), 1u);
}

/// JSON cannot say them, and still they have not changed.
TEST(ChangedSettings, NamesThatAreNotUtf8AreCompared) {
  TrainConfig config = with_model();
  config.data = "npy:bilder_\xfc.npy,t.npy";
  EXPECT_TRUE(changed_settings(to_json(config), config).empty());
}

TEST(Config, NamesOfPyTorchAreUnderstood) {
  const TrainConfig config =
      from_file("[optimiser]\nlr = 0.5\nwd = 0.25\n[data]\nbatch_size = 6\n");
  EXPECT_EQ(config.learning_rate, 0.5);
  EXPECT_EQ(config.weight_decay, 0.25);
  EXPECT_EQ(config.batch, 6);
  expect_file_refused("[optimiser]\nlr = 0.5\nlearning_rate = 0.5\n", "given twice");
}

TEST(Config, SlipsGetASuggestion) {
  expect_file_refused("[train]\nepohs = 3\n", "has no key epohs (did you mean epochs?); known: ");
  expect_file_refused("[optimizer]\nlr = 3\n",
                      "the table [optimizer] is not known (did you mean [optimiser]?); known: ");
  expect_file_refused("[run]\nlerning_rate = 3\n", "has no key lerning_rate; known: ");
  expect_refusal([] { config_option("--launch", "mpl"); }, "threads, mpi (did you mean mpi?)");
}

TEST(Config, ReadsFromDisk) {
  const ScratchFolder folder;
  write_bytes(folder / "run.toml", "[train]\nsteps = 3\n");
  ASSERT_EQ(read_config_file(folder / "run.toml").size(), 1u);
  write_bytes(folder / "empty.toml", "");
  EXPECT_TRUE(read_config_file(folder / "empty.toml").empty());
  expect_refusal([&] { read_config_file(folder / "none.toml"); }, "[--config] cannot read");
  expect_refusal([&] { read_config_file(folder / "."); }, "[--config] cannot read");
}

TEST(Configured, PartsFollowTheConfiguration) {
  TrainConfig config = with_model();
  config.optimiser = "adamw";
  config.schedule = "one_cycle";
  config.warmup_steps = 2;
  config.monitor = "mean_iou";
  config.patience = 1;
  config = resolved(config);
  EXPECT_EQ(configured_optimiser(config)->state_copies(), 2);
  const LearningRate rate = configured_learning_rate(config, 12, 4);
  EXPECT_DOUBLE_EQ(rate.at(2), 0.001 / 25);
  EXPECT_DOUBLE_EQ(rate.at(0), 0.001 / 25 / 3);
  EarlyStopping stopping = configured_early_stopping(config);
  stopping.update(0.5);
  EXPECT_EQ(stopping.update(0.6), EarlyStopping::Verdict::kImproved);
  expect_refusal([&] { configured_learning_rate(config, 2, 1); }, "use at most 1");
  EXPECT_FALSE(configured_plateau(config));
  config.ema = 0.9;
  EXPECT_EQ(configured_optimiser(config)->state_copies(), 3);
  config.schedule = "plateau";
  config.plateau_patience = 0;
  std::optional<Plateau> plateau = configured_plateau(config);
  for (double iou : {0.5, 0.6, 0.4}) plateau->update(iou);  // it should rise
  EXPECT_DOUBLE_EQ(plateau->rate(), 1e-4);
}

}  // namespace
}  // namespace tessera::config_test

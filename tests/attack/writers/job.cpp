#include "tests/attack/writers/job.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tessera::attack {
namespace {

const std::string kModel = "unet2d:base=2,depth=2,classes=2";
const std::string kWeights = "weights.safetensors";

std::vector<Job> make_jobs() {
  return {{{"plan", kModel, "--input", "1x1x16x16", "--space", "2x1", "--write-plan", "plan.json",
            "--trace", "trace.json"},
           {{"plan.json", true}, {"trace.json", true}}},
          {{"inspect", kModel, "--dot", "graph.dot", "--svg", "graph.svg"},
           {{"graph.dot", true}, {"graph.svg", true}}},
          {{"verify", kModel, "--input", "1x1x16x16", "--space", "2x1", "--steps", "1",
            "--dump-gradients", "gradients.safetensors", "--save-weights", "updated.safetensors"},
           {{"gradients.safetensors", true}, {"updated.safetensors", true}}},
          {{"bench", kModel, "--input", "1x1x16x16", "--space", "2x1", "--iterations", "1",
            "--warmup", "0", "--trace", "measured.json"},
           {{"measured.json", false}}},
          {{"predict", kModel, "--input", "1x1x16x16", "--space", "2x1", "--weights", kWeights,
            "--images", "synthetic:samples=3,classes=2", "--output", "classes.npy",
            "--probabilities", "probabilities.npy", "--raw", "raw.npy"},
           {{"classes.npy", true}, {"probabilities.npy", true}, {"raw.npy", true}}},
          {{"train", kModel, "--input", "1x1x16x16", "--space", "2x1", "--steps", "2", "--data",
            "synthetic:samples=4,classes=2", "--run", "run", "--save-weights",
            "trained.safetensors", "--dump-gradients", "first.safetensors"},
           {{"run/run.json", false},
            {"run/metrics.csv", false},
            {"trained.safetensors", true},
            {"first.safetensors", true}}}};
}

}  // namespace

const std::vector<Job>& jobs() {
  static const std::vector<Job> all = make_jobs();
  return all;
}

const Job& job(const std::string& command) {
  for (const Job& each : jobs())
    if (each.words[0] == command) return each;
  throw std::out_of_range(command);
}

void prepare_inputs(const std::string& folder) {
  static const std::string weights = [] {
    const Folder made;
    const Ending ending = run({"verify", kModel, "--input", "1x1x16x16", "--steps", "1", "--dtype",
                               "float32", "--save-weights", kWeights},
                              made.path());
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    return read_file(made / kWeights);
  }();
  write_file(folder + "/" + kWeights, weights);
}

const std::map<std::string, std::string>& undisturbed(const Job& job) {
  static std::map<std::string, std::map<std::string, std::string>> known;
  auto& contents = known[job.words[0]];
  if (!contents.empty()) return contents;
  const Folder folder;
  prepare_inputs(folder.path());
  const Ending ending = run(job.words, folder.path());
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  for (const Output& output : job.outputs) {
    const std::string content = read_file(folder / output.name);
    EXPECT_FALSE(content.empty()) << output.name;
    contents[output.name] = content;
  }
  return contents;
}

}  // namespace tessera::attack

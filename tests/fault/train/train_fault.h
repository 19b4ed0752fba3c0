#pragma once
// Base of the tests: one tiny training job on three ranks, its run folder, and the weights that it
// ends with where nobody disturbs it.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fault/train/program.h"
#include "tests/fault/train/run_files.h"

namespace tessera {

constexpr int kRanks = 3;
constexpr int kSteps = 80;

class TrainFault : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string run() const { return file("run"); }
  std::string weights() const { return read_file(file("weights.safetensors")); }

  /// The command of the job. An option in `more` that is here already replaces it.
  Words command(const Words& more = {}) const;

  /// Runs the command to its end; a program that hangs fails the test.
  struct Outcome {
    int exit_code = -1;
    std::string errors;
  };
  Outcome play(const Words& words, const ProgramOptions& options = {});

  /// Starts the job again: it must resume, end well, and with the weights of the undisturbed run.
  void expect_resumes_and_finishes(const Words& more = {});
  /// No folder with the name of a checkpoint is less than one.
  void expect_whole_checkpoints() const;
  /// The weights of a run of command() that nobody disturbed. On threads, whatever `more` says: the
  /// transport has no influence on any bit.
  static const std::string& undisturbed_weights();

  TemporaryFolder folder_;
};

void expect_contains(const std::string& text, const std::string& part);

}  // namespace tessera

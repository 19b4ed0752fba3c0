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

/// A rank for each of three domains, whose epochs have 6, 4 and 5 batches; losses that grow with
/// the step.
const std::vector<std::string> kDomains{
    "train",
    "dsn:base=2,code=5,classes=2,targets=2,target_batch=3/2,start=5,ramp=20",
    "--input",
    "2x1x16x16",
    "--space",
    "1x1",
    "--domains",
    "1",
    "--data",
    "source=synthetic:kind=classification,samples=14,classes=2;"
    "target1=synthetic:kind=classification,samples=13,classes=2,domain=1;"
    "target2=synthetic:kind=classification,samples=11,classes=2,domain=2"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more);

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
  /// The job with `more` goes on on threads, and ends with the weights of another run of it that
  /// nobody disturbed.
  void expect_undisturbed_weights(const Words& more);
  /// No folder with the name of a checkpoint is less than one.
  void expect_whole_checkpoints() const;
  /// The weights of a run of command() that nobody disturbed. On threads, whatever `more` says: the
  /// transport has no influence on any bit.
  static const std::string& undisturbed_weights();

  TemporaryFolder folder_;
};

void expect_contains(const std::string& text, const std::string& part);

}  // namespace tessera

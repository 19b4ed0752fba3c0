#pragma once
// One job in a folder of its own, to be disturbed: the files that it reads, files beside it that
// nobody may touch, and what must hold afterwards. What does not hold is collected as complaints,
// with an account of what was done, because the seed alone does not repeat a race.
//
// Example:
//   Scene scene(seed);
//   const auto program = scene.start(scene.train());
//   program->signal(SIGKILL);
//   scene.expect_end(*program, {128 + SIGKILL});
//   scene.expect_training_recovers();
//   scene.account();   // empty where all is well

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "tests/attack/faults/small_jobs.h"
#include "tests/fault/train/program.h"
#include "tests/fault/train/run_files.h"
#include "tests/fault/train/small_disk.h"

namespace tessera {

enum class LaunchedBy { kThreads, kMpi };

class Scene {
 public:
  explicit Scene(uint64_t seed, LaunchedBy launched_by = LaunchedBy::kThreads);

  int64_t below(int64_t limit) { return static_cast<int64_t>(random_() % limit); }
  const std::string& pick(const Words& words) { return words[below(words.size())]; }

  const std::string& folder() const { return folder_.path(); }
  std::string file(const std::string& name) const { return folder() + "/" + name; }
  std::string run() const { return file("run"); }
  const SmallJob& job() const { return job_; }
  LaunchedBy launched_by() const { return launched_by_; }

  Words train() const;
  Words predict() const;
  std::unique_ptr<Program> start(const Words& words, const ProgramOptions& options = {});
  /// Waits for the end. 0 is always right, and then the job's result must be there, unless the
  /// program says that it was told to stop.
  int expect_end(Program& program, std::initializer_list<int> codes);
  int play(const Words& words, std::initializer_list<int> codes,
           const ProgramOptions& options = {});

  /// Gives the run a file system of its own size.
  SmallDisk& put_run_on_disk(int64_t kibibytes);
  /// Trains up to some random step, so that there are checkpoints.
  void train_a_part();

  /// From here on checkpoints may be missing or broken: it was the fault that did it.
  void checkpoints_are_damaged() { checkpoints_are_sound_ = false; }
  /// From here on rows of metrics.csv before the step that the run resumes at may be anything.
  void metrics_are_damaged() { metrics_are_sound_ = false; }

  /// The same command again ends with the undisturbed run's weights and curve, loses no checkpoint,
  /// leaves nothing behind and has touched nothing else.
  void expect_training_recovers();
  void expect_prediction_recovers();
  /// An earlier prediction's file, which the next one replaces or leaves.
  void leave_older_prediction();
  /// A prediction's file is there whole, as it was before, or not at all.
  void expect_whole_prediction();

  void note(const std::string& text);
  void complain(const std::string& text);
  /// What was done and what was wrong about it; empty where nothing was.
  std::string account() const;

 private:
  void expect_result(const std::string& output);
  void look_at_checkpoints();
  void expect_metrics(int64_t resumed_at);
  void expect_bystanders();
  void expect_nothing_left_in_run();

  std::mt19937_64 random_;
  LaunchedBy launched_by_;
  const SmallJob& job_;
  TemporaryFolder folder_, logs_;
  std::optional<SmallDisk> disk_;
  std::map<std::string, std::string> bystanders_;
  bool checkpoints_are_sound_ = true, metrics_are_sound_ = true;
  int64_t newest_checkpoint_ = 0;
  int num_programs_ = 0;
  bool has_complaint_ = false;
  std::string account_;
};

/// All files below a folder by their path in it, with their content.
std::map<std::string, std::string> files_below(const std::string& folder);

}  // namespace tessera

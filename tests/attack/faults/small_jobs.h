#pragma once
// The jobs that are disturbed: so small that starting the program takes most of their time, and
// different in what a resumed run could lose.

#include <string>
#include <vector>

namespace tessera {

using Words = std::vector<std::string>;

constexpr int kJobSteps = 30;

struct SmallJob {
  std::string name;
  int num_ranks = 1;
  std::string targets;  // the name of its targets' file
  Words model;          // the model with its input
  Words placement;
  Words training;  // what only `train` knows
};
const std::vector<SmallJob>& small_jobs();

/// Writes what the jobs read: images.npy, pixels.npy and labels.npy (targets of each pixel and of
/// each image), and more of the same as many_images.npy and so on, for a prediction that takes a
/// while.
void write_job_data(const std::string& folder);

/// The commands, with all files in one folder: data/ is read, for a prediction with
/// data/given.safetensors; run/, out/weights.safetensors and out/classes.npy are written.
Words train_command(const SmallJob& job, const std::string& folder);
Words predict_command(const SmallJob& job, const std::string& folder);

/// What a job leaves where nobody disturbs it.
struct Undisturbed {
  std::string weights, metrics, classes;
};
/// The same on every call; runs the jobs on the first one.
const Undisturbed& undisturbed(const SmallJob& job);

}  // namespace tessera

#include "tests/attack/faults/small_jobs.h"

#include <filesystem>
#include <map>
#include <random>
#include <stdexcept>

#include "tests/fault/train/program.h"
#include "tests/fault/train/run_files.h"

namespace tessera {
namespace {

constexpr int64_t kSamples = 12, kManySamples = 300, kSide = 16;

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

std::vector<float> noise(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 1000) / 1000;
  return values;
}

void write_set(const std::string& folder, const std::string& prefix, int64_t samples,
               uint64_t seed) {
  const std::vector<float> images = noise(samples * kSide * kSide, seed);
  std::vector<uint8_t> pixels, labels;
  for (float value : images) pixels.push_back(value > 0.5f);
  for (int64_t i = 0; i < samples; ++i) labels.push_back(i % 3 == 0);
  const std::string start = folder + "/" + prefix;
  write_npy(start + "images.npy", {samples, 1, kSide, kSide}, images);
  write_npy(start + "pixels.npy", {samples, kSide, kSide}, pixels);
  write_npy(start + "labels.npy", {samples}, labels);
}

void run_to_its_end(const Words& words, const std::string& log) {
  Program program(words, log);
  if (program.wait() != 0)
    throw std::runtime_error("an undisturbed job fails: " + program.errors());
}

Undisturbed run_undisturbed(const SmallJob& job) {
  const TemporaryFolder folder;
  const std::string& path = folder.path();
  write_job_data(path + "/data");
  std::filesystem::create_directories(path + "/out");
  run_to_its_end(train_command(job, path), path + "/log");
  Undisturbed result{read_file(path + "/out/weights.safetensors"),
                     read_file(path + "/run/metrics.csv"), ""};
  write_file(path + "/data/given.safetensors", result.weights);
  run_to_its_end(predict_command(job, path), path + "/log");
  result.classes = read_file(path + "/out/classes.npy");
  return result;
}

}  // namespace

const std::vector<SmallJob>& small_jobs() {
  static const std::vector<SmallJob> jobs{
      {"unet2d in float32 on 1 rank",
       1,
       "pixels.npy",
       {"unet2d:base=2,depth=2,classes=2", "--input", "2x1x16x16"},
       {"--space", "1x1"},
       {"--patience", "50", "--monitor", "mean_iou"}},
      {"cnn2d in float64 on 2x1 ranks",
       2,
       "labels.npy",
       {"cnn2d:base=2,depth=2,classes=2", "--input", "2x1x16x16", "--dtype", "float64"},
       {"--space", "2x1"},
       {"--accumulation", "2"}},
      {"unet2d in float64 on 2x2 ranks",
       4,
       "pixels.npy",
       {"unet2d:base=2,depth=2,classes=2", "--input", "2x1x16x16", "--dtype", "float64"},
       {"--space", "2x2"},
       {"--optimiser", "adamw", "--learning-rate-schedule", "cosine", "--clip-norm", "1"}},
      {"unet2d in float32 on 2 stages",
       2,
       "pixels.npy",
       {"unet2d:base=2,depth=2,classes=2", "--input", "2x1x16x16"},
       {"--stages", "2", "--balance", "layers", "--micro-batches", "2", "--norm", "micro-batch"},
       // Nine samples leave one, which has no statistics for two micro-batches.
       {"--keep", "1", "--drop-last"}},
  };
  return jobs;
}

void write_job_data(const std::string& folder) {
  std::filesystem::create_directories(folder);
  write_set(folder, "", kSamples, 1);
  write_set(folder, "many_", kManySamples, 2);
}

Words train_command(const SmallJob& job, const std::string& folder) {
  Words words{TESSERA_PROGRAM, "train"};
  append(words, job.model);
  append(words, job.placement);
  append(words, job.training);
  append(words, {"--data", "npy:" + folder + "/data/images.npy," + folder + "/data/" + job.targets,
                 "--validation-fraction", "0.25", "--steps", std::to_string(kJobSteps),
                 "--checkpoint-interval", "3", "--run", folder + "/run", "--save-weights",
                 folder + "/out/weights.safetensors"});
  return words;
}

Words predict_command(const SmallJob& job, const std::string& folder) {
  Words words{TESSERA_PROGRAM, "predict"};
  append(words, job.model);
  append(words, job.placement);
  append(words, {"--weights", folder + "/data/given.safetensors", "--images",
                 "npy:" + folder + "/data/many_images.npy," + folder + "/data/many_" + job.targets,
                 "--output", folder + "/out/classes.npy"});
  return words;
}

const Undisturbed& undisturbed(const SmallJob& job) {
  static std::map<std::string, Undisturbed> known;
  const auto found = known.find(job.name);
  if (found != known.end()) return found->second;
  return known[job.name] = run_undisturbed(job);
}

}  // namespace tessera

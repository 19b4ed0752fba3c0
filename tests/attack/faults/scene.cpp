#include "tests/attack/faults/scene.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

namespace tessera {
namespace {

namespace fs = std::filesystem;

const char* const kOlderPrediction = "an older prediction\n";

const SmallJob& random_job(std::mt19937_64& random, LaunchedBy launched_by) {
  std::vector<const SmallJob*> fitting;
  for (const SmallJob& job : small_jobs())  // more than two processes take seconds to start
    if (launched_by == LaunchedBy::kThreads || job.num_ranks == 2) fitting.push_back(&job);
  return *fitting[random() % fitting.size()];
}

Words with_launch(Words words, LaunchedBy launched_by) {
  if (launched_by == LaunchedBy::kMpi) words.insert(words.end(), {"--launch", "mpi"});
  return words;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The third column, which no two runs have alike, left out.
std::string without_times(const std::string& metrics) {
  std::string text;
  for (const std::string& row : lines_of(metrics)) {
    const size_t begin = row.find(',', row.find(',') + 1), end = row.find(',', begin + 1);
    text += (end == std::string::npos ? row : row.substr(0, begin) + row.substr(end)) + "\n";
  }
  return text;
}

/// What the program says that it resumed at; 0 where it began anew.
int64_t resumed_step(const std::string& errors) {
  const std::string words = "resumed at step ";
  const size_t place = errors.find(words);
  return place == std::string::npos ? 0 : std::atoll(errors.c_str() + place + words.size());
}

std::string last_part(const std::string& text) {
  constexpr size_t kMost = 1500;
  return text.size() <= kMost ? text : "..." + text.substr(text.size() - kMost);
}

bool is_output(const std::string& path) {
  return path.starts_with("run/") || path == "out/weights.safetensors" || path == "out/classes.npy";
}

}  // namespace

Scene::Scene(uint64_t seed, LaunchedBy launched_by)
    : random_(seed), launched_by_(launched_by), job_(random_job(random_, launched_by)) {
  write_job_data(file("data"));
  write_file(file("data/given.safetensors"), undisturbed(job_).weights);
  write_file(file("beside.txt"), "This file is beside the run.\n");
  fs::create_directories(file("run-other/checkpoints/step-000003"));
  write_file(file("run-other/run.json"), "{}\n");
  write_file(file("run-other/checkpoints/step-000003/state.json"), "{\"of\": \"another run\"}\n");
  fs::create_directories(run() + "/checkpoints");  // moments need it
  fs::create_directories(file("out"));
  bystanders_ = files_below(folder());
  note(fmt::format("seed {}: {}, {}", seed, job_.name,
                   launched_by == LaunchedBy::kMpi ? "mpi" : "threads"));
}

SmallDisk& Scene::put_run_on_disk(int64_t kibibytes) {
  disk_.emplace(run(), kibibytes);
  fs::create_directories(run() + "/checkpoints");
  return *disk_;
}

Words Scene::train() const { return with_launch(train_command(job_, folder()), launched_by_); }
Words Scene::predict() const { return with_launch(predict_command(job_, folder()), launched_by_); }

std::unique_ptr<Program> Scene::start(const Words& words, const ProgramOptions& options) {
  const std::string log = fmt::format("{}/{}", logs_.path(), num_programs_++);
  return std::make_unique<Program>(words, log, options);
}

int Scene::expect_end(Program& program, std::initializer_list<int> codes) {
  const std::optional<int> code = program.wait();
  if (!code) {
    complain("it hangs:\n" + last_part(program.errors()));
    return -1;
  }
  note(fmt::format("exit code {}: {}", *code, last_part(program.errors())));
  if (*code != 0 && std::find(codes.begin(), codes.end(), *code) == codes.end())
    complain(fmt::format("exit code {}; 0{}{} would be right", *code, codes.size() ? ", " : "",
                         fmt::join(codes, ", ")));
  if (program.errors().find("internal error") != std::string::npos)
    complain("it speaks of an internal error");
  if (*code == 0) expect_result(program.output());
  look_at_checkpoints();
  return *code;
}

void Scene::expect_result(const std::string& output) {
  const auto says = [&](const char* words) { return output.find(words) != std::string::npos; };
  if (says("interrupted after")) return;
  if (says("finished after") || says("nothing to do")) {
    if (read_file(file("out/weights.safetensors")) != undisturbed(job_).weights)
      complain("it says that it has finished, but the weights differ from the undisturbed run's");
  } else if (says("samples ->")) {
    if (read_file(file("out/classes.npy")) != undisturbed(job_).classes)
      complain("it says that it has finished, but the prediction differs from the undisturbed one");
  } else {
    complain("exit code 0 without a result:\n" + output);
  }
}

int Scene::play(const Words& words, std::initializer_list<int> codes,
                const ProgramOptions& options) {
  const auto program = start(words, options);
  return expect_end(*program, codes);
}

void Scene::train_a_part() {
  const int64_t steps = 4 + below(kJobSteps - 6);
  note(fmt::format("trains {} steps", steps));
  // A schedule of the learning rate spans all steps, so the run is stopped, not asked for fewer.
  const auto program = start(train());
  await([&] { return last_step(run()) >= steps || program->ended(); });
  program->signal(SIGTERM);
  expect_end(*program, {});
}

void Scene::look_at_checkpoints() {
  if (!checkpoints_are_sound_) return;
  int64_t newest = 0;
  for (const std::string& checkpoint : checkpoints(run())) {
    const std::string fault = fault_of_checkpoint(checkpoint);
    if (!fault.empty()) complain(fmt::format("{}: {}", checkpoint, fault));
    newest = std::atoll(fs::path(checkpoint).filename().string().c_str() + 5);
  }
  if (newest < newest_checkpoint_)
    complain(fmt::format("the checkpoint of step {} is lost, the newest is {}", newest_checkpoint_,
                         newest));
  newest_checkpoint_ = newest;
}

void Scene::expect_training_recovers() {
  const auto program = start(train_command(job_, folder()));
  if (expect_end(*program, {}) != 0) return;
  expect_metrics(resumed_step(program->errors()));
  checkpoints_are_sound_ = true;
  newest_checkpoint_ = kJobSteps;
  look_at_checkpoints();
  expect_nothing_left_in_run();
  expect_bystanders();
}

void Scene::expect_metrics(int64_t resumed_at) {
  const std::string metrics = without_times(read_file(run() + "/metrics.csv"));
  const std::string expected = without_times(undisturbed(job_).metrics);
  if (metrics_are_sound_) {
    if (metrics != expected)
      complain("metrics.csv differs from the undisturbed run's:\n" + metrics);
    return;
  }
  const std::vector<std::string> rows = lines_of(metrics), right = lines_of(expected);
  if (rows.empty() || rows[0] != right[0]) complain("metrics.csv lost its header:\n" + metrics);
  std::map<int64_t, std::string> by_step;
  for (size_t i = 1; i < rows.size(); ++i)
    if (!by_step.emplace(std::atoll(rows[i].c_str()), rows[i]).second)
      complain("a doubled step in metrics.csv: " + rows[i]);
  for (int64_t step = resumed_at + 1; step <= kJobSteps; ++step)
    if (by_step[step] != right[step])
      complain(fmt::format("step {} in metrics.csv is \"{}\", not \"{}\"", step, by_step[step],
                           right[step]));
}

void Scene::leave_older_prediction() { write_file(file("out/classes.npy"), kOlderPrediction); }

void Scene::expect_whole_prediction() {
  if (!fs::exists(file("out/classes.npy"))) return;
  const std::string classes = read_file(file("out/classes.npy"));
  if (classes != undisturbed(job_).classes && classes != kOlderPrediction)
    complain("classes.npy is there, but neither the older nor the undisturbed prediction");
}

void Scene::expect_prediction_recovers() {
  if (play(predict_command(job_, folder()), {}) == 0) expect_bystanders();
}

void Scene::expect_bystanders() {
  std::map<std::string, std::string> now = files_below(folder());
  for (const auto& [path, content] : bystanders_) {
    if (!now.contains(path))
      complain(path + " is gone");
    else if (now[path] != content)
      complain(path + " has changed");
  }
  for (const auto& [path, content] : now)
    if (!bystanders_.contains(path) && !is_output(path)) complain(path + " was left behind");
}

void Scene::expect_nothing_left_in_run() {
  for (const auto& [path, content] : files_below(run())) {
    const bool known =
        path == "run.json" || path == "metrics.csv" || path.starts_with("checkpoints/step-");
    if (!known) complain("run/" + path + " was left behind");
  }
}

void Scene::note(const std::string& text) { account_ += "  " + text + "\n"; }

void Scene::complain(const std::string& text) {
  has_complaint_ = true;
  account_ += "  ! " + text + "\n";
}

std::string Scene::account() const { return has_complaint_ ? account_ : ""; }

std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> files;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(folder, none)) {
    const std::string path = fs::relative(entry.path(), folder).string();
    if (entry.is_symlink())
      files[path] = "link to " + fs::read_symlink(entry.path()).string();
    else if (entry.is_regular_file())
      files[path] = read_file(entry.path());
  }
  return files;
}

}  // namespace tessera

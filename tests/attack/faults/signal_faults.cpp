// Signals to the program and to its ranks.

#include <fmt/format.h>

#include <csignal>
#include <thread>

#include "tests/attack/faults/fault_table.h"
#include "tests/attack/faults/moment.h"

namespace tessera {
namespace {

void sleep_up_to(Scene& scene, int64_t milliseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(scene.below(milliseconds * 1000)));
}

/// Nothing, where the job ended before it had all its ranks.
std::optional<pid_t> await_some_rank(Scene& scene, Program& program) {
  const size_t num_ranks = scene.job().num_ranks;
  await([&] { return program.ranks().size() == num_ranks || program.ended(); });
  const std::map<int, pid_t> ranks = program.ranks();
  const auto chosen = ranks.find(static_cast<int>(scene.below(num_ranks)));
  if (chosen == ranks.end()) return std::nullopt;
  scene.note(fmt::format("rank {} is chosen", chosen->first));
  return chosen->second;
}

/// The ranks end by themselves; the next start must wait for nobody else to let go of the folder.
void expect_all_gone(Scene& scene) {
  if (!await([] { return living_descendants().empty(); }))
    scene.complain("ranks live on without their launcher");
}

}  // namespace

void kill_run(Scene& scene) {
  for (int64_t left = 1 + scene.below(3); left > 0; --left) {
    Moment moment(scene);
    const auto program = scene.start(scene.train());
    moment.await(*program);
    program->signal(SIGKILL);
    scene.expect_end(*program, {128 + SIGKILL});
    expect_all_gone(scene);
  }
}

/// Before it has its handler, a signal ends the program as it ends any other; a second one does
/// that at any time.
void stop_run(Scene& scene) {
  for (int64_t left = 1 + scene.below(2); left > 0; --left) {
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const int number = numbers[scene.below(3)];
    const bool twice = scene.below(3) == 0;
    scene.note(fmt::format("signal {}{}", number, twice ? ", twice" : ""));
    Moment moment(scene);
    const auto program = scene.start(scene.train());
    moment.await(*program);
    program->signal(number);
    if (twice) {
      sleep_up_to(scene, 20);
      program->signal(number);
    }
    scene.expect_end(*program, {128 + number, 3});
  }
}

void pause_run(Scene& scene) {
  Moment moment(scene);
  const auto program = scene.start(scene.train());
  moment.await(*program);
  program->signal(SIGSTOP);
  sleep_up_to(scene, 500);
  program->signal(SIGCONT);
  scene.expect_end(*program, {});
}

void kill_one_rank(Scene& scene) {
  Moment moment(scene);
  const auto program = scene.start(scene.train());
  const auto rank = await_some_rank(scene, *program);
  moment.await(*program);
  if (rank && !program->ended()) kill(*rank, SIGKILL);
  scene.expect_end(*program, {3});
}

void pause_one_rank(Scene& scene) {
  Moment moment(scene);
  const auto program = scene.start(scene.train());
  const auto rank = await_some_rank(scene, *program);
  moment.await(*program);
  if (rank && !program->ended()) {
    kill(*rank, SIGSTOP);
    sleep_up_to(scene, 500);
    kill(*rank, SIGCONT);
  }
  scene.expect_end(*program, {});
}

void kill_launcher(Scene& scene) {
  Moment moment(scene);
  const auto program = scene.start(scene.train());
  moment.await(*program);
  program->signal(SIGKILL);
  scene.expect_end(*program, {128 + SIGKILL});
  expect_all_gone(scene);
}

}  // namespace tessera

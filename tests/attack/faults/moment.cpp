#include "tests/attack/faults/moment.h"

#include <fmt/format.h>

#include <thread>

namespace tessera {
namespace {

const char* const kAfterNames[] = {"start", "step", "event"};

}  // namespace

Moment::Moment(Scene& scene)
    : scene_(scene),
      after_(static_cast<After>(scene.below(3))),
      events_(scene.run() + "/checkpoints") {
  if (after_ == After::kStart) {
    const int64_t milliseconds = scene.launched_by() == LaunchedBy::kMpi ? 4000 : 900;
    delay_ = std::chrono::microseconds(scene.below(milliseconds * 1000));
  } else {
    count_ = after_ == After::kStep ? last_step(scene.run()) + scene.below(12)
                                    : 1 + scene.below(30);  // some four for each checkpoint
    delay_ = std::chrono::microseconds(scene.below(scene.below(4) == 0 ? 20'000 : 400));
  }
  scene.note(fmt::format("the moment: {} us after {} {}", delay_.count(),
                         kAfterNames[static_cast<int>(after_)], count_));
}

void Moment::await(Program& program) {
  using Clock = std::chrono::steady_clock;
  if (after_ == After::kStep)
    tessera::await([&] { return last_step(scene_.run()) >= count_ || program.ended(); });
  if (after_ == After::kEvent) events_.await_events(static_cast<int>(count_), program);
  const Clock::time_point end = Clock::now() + delay_;
  constexpr std::chrono::milliseconds kCoarse(5);
  while (Clock::now() < end && !program.ended())
    if (end - Clock::now() > kCoarse)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    else
      std::this_thread::yield();
}

}  // namespace tessera

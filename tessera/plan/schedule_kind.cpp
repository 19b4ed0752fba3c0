#include "tessera/plan/schedule_kind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.h"

namespace tessera {
namespace {

struct Named {
  ScheduleKind kind;
  const char* name;
};
constexpr Named kNames[] = {
    {ScheduleKind::kSequential, "sequential"},      {ScheduleKind::kGpipe, "gpipe"},
    {ScheduleKind::kOneForwardOneBackward, "1f1b"}, {ScheduleKind::kInterleaved, "interleaved"},
    {ScheduleKind::kZeroBubble, "zero-bubble"},     {ScheduleKind::kGems, "gems"}};

}  // namespace

int stage_for(int stage, int64_t micro_batch, int num_stages, ScheduleKind kind) {
  const bool mirrored = kind == ScheduleKind::kGems && micro_batch % 2 == 1;
  return mirrored ? num_stages - 1 - stage : stage;
}

std::string to_string(ScheduleKind kind) {
  for (const Named& named : kNames)
    if (named.kind == kind) return named.name;
  TESSERA_CHECK(false, "unknown schedule");
}

ScheduleKind parse_schedule(const std::string& name) {
  for (const Named& named : kNames)
    if (named.name == name) return named.kind;
  throw_error<InvalidInput>("[schedule] {} is unknown; use {}", name,
                            fmt::join(schedule_names(), ", "));
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Named& named : kNames) names.push_back(named.name);
  return names;
}

}  // namespace tessera

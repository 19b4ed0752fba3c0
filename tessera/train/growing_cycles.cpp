#include "tessera/train/growing_cycles.h"

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/base/text.h"
#include "tessera/files/json.h"

namespace tessera {

StepLowerings GrowingCycles::steps(const TrainingJob& job, const Multigrid& multigrid) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = known_.try_emplace(to_string(multigrid));
  if (is_new) found->second = lower_steps(job, multigrid);
  return found->second;
}

Multigrid with_more_cycles(Multigrid multigrid) {
  ++multigrid.forward;
  ++multigrid.backward;
  return multigrid;
}

std::string cycles_text(const Multigrid& multigrid) {
  return fmt::format("{}/{}", multigrid.forward, multigrid.backward);
}

Multigrid with_cycles(Multigrid multigrid, const std::string& text) {
  const std::vector<std::string> words = split_text(text, '/');
  const auto number = [&](size_t i) {
    const auto count = i < words.size() ? read_number<int64_t>(words[i]) : std::nullopt;
    if (words.size() != 2 || !count || *count < 1)
      throw_error<InvalidInput>("[resume] V-cycles are \"{}\"; they must be two numbers from 1",
                                cut_short(text));
    return *count;
  };
  multigrid.forward = number(0);
  multigrid.backward = number(1);
  return multigrid;
}

}  // namespace tessera

#pragma once
// Text files that users write or keep: configurations, plans, balances, records of a run.
//
// Example:
//   nlohmann::json plan = parse_json(read_text("plan.json", "--plan"));

#include <cstdint>
#include <string>

namespace tessera {

/// More than any plan or state needs: those of 100,000 operators have a few MiB.
constexpr uint64_t kMaxTextBytes = 64 << 20;

/// All of a regular file. Throws InvalidInput that names `place` (the option, say) and the file
/// where it cannot be read or is larger.
std::string read_text(const std::string& path, const std::string& place,
                      uint64_t max_bytes = kMaxTextBytes);

}  // namespace tessera

#pragma once
// Small text files that users write: configurations, plans, balances.
//
// Example:
//   Plan plan = plan_from_json(read_text("plan.json", "--plan"));

#include <string>

namespace tessera {

/// All of a file or pipe. Throws InvalidInput that names `what` (the option, say) where it cannot
/// be read.
std::string read_text(const std::string& path, const std::string& what);

}  // namespace tessera

#pragma once
// The names in a folder of checkpoints: "step-000123", and "step-000123.1" for the moment in which
// a checkpoint of the same step is being replaced. Names that are not ours are not seen, so other
// files may lie in the same folder.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct CheckpointName {
  int64_t step = 0;
  int64_t revision = 0;  // the higher one is newer
  auto operator<=>(const CheckpointName&) const = default;
};

std::string to_string(const CheckpointName& name);
/// Empty for a text that to_string() does not give.
std::optional<CheckpointName> parse_checkpoint_name(const std::string& text);

/// Newest first; none where the folder does not exist.
std::vector<CheckpointName> scan_checkpoints(const std::string& folder);

/// The path under which a checkpoint is written, and one under which it is removed: a folder cannot
/// be removed in one step, so it first gets a name that no reader takes for a checkpoint.
std::string writing_path(const std::string& folder, const CheckpointName& name);
std::string removing_path(const std::string& folder, const CheckpointName& name);

/// Removes folders with such names, and a link on its way, which a killed run left.
void remove_leftovers(const std::string& folder);

/// Removes a file or folder with all it holds, if it exists.
void remove_all(const std::string& path);

}  // namespace tessera

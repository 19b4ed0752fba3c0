#pragma once
// FOLDER/best, a link to the best checkpoint of a folder, for people and for other programs. It is
// replaced in one step, so it leads to a whole checkpoint whatever killed the run. What it says is
// believed only where the checkpoint itself says that it was the best (checkpoint_store.cpp).

#include <optional>
#include <string>

#include "tessera/checkpoint/checkpoint_name.h"

namespace tessera {

/// None where there is no such link, or it leads to something that is not called as a checkpoint.
std::optional<CheckpointName> read_best_link(const std::string& folder);

/// Throws InvalidInput where the link cannot be made, such as over a file that somebody else has
/// laid there.
void write_best_link(const std::string& folder, const CheckpointName& name);

/// A link only; nothing else that has the name.
void remove_best_link(const std::string& folder);

}  // namespace tessera

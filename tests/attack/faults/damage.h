#pragma once
// Random damage to one file, of the kinds that disks, copies and people do.

#include <string>

#include "tests/attack/faults/scene.h"

namespace tessera {

/// Flips a bit, cuts, empties, removes, lengthens, overwrites a stretch, or fills with other bytes.
/// Notes what it did.
void damage_file(Scene& scene, const std::string& path);

}  // namespace tessera

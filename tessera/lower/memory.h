#pragma once
// Puts every buffer's Alloc right before its first use and its Free right after its last. Results
// stay; what lives as long as the parameters has neither.

#include "tessera/lower/program.h"

namespace tessera {

void insert_allocations(Program* program);

}  // namespace tessera

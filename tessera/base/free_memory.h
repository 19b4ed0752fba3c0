#pragma once
// What this process may still take, by the machine and by its own limits.

#include <cstdint>

namespace tessera {

/// Bytes that the machine has free, or fewer where ulimit or prlimit leave this process fewer. The
/// largest number there is where nobody says.
int64_t free_memory();

/// Bytes of address space that this process has mapped.
int64_t address_space();

/// Bytes of address space that this process may still map; the largest number there is without a
/// limit.
int64_t free_address_space();

}  // namespace tessera

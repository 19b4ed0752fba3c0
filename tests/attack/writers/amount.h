#pragma once
// How much an attack tries, from the environment: TESSERA_ATTACK_CASES and TESSERA_ATTACK_SEED.

#include <cstdint>
#include <functional>

namespace tessera::attack {

/// Runs cases with the seeds SEED, SEED + 1, ...; prints the seed of the first that fails, and how
/// many there were. `by_default` is their number where the
/// environment says none.
void for_each_case(int by_default, const std::function<void(uint64_t seed)>& attack);

}  // namespace tessera::attack

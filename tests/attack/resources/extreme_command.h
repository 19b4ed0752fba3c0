#pragma once
// Command lines that nobody should type: all commands, with numbers from the ends of what numbers
// can be.

#include <random>
#include <string>
#include <vector>

namespace tessera_attack {

/// The same for the same state of the generator.
std::vector<std::string> extreme_command(std::mt19937_64& random);

}  // namespace tessera_attack

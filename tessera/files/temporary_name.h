#pragma once
// The names of files on their way to a target, in the target's folder:
//
//   out/map.bin  ──►  out/.map.bin.3f9c0a1b72d4e856.writing
//
// The sixteen digits are random, so that nobody can lay a link or a pipe there beforehand; the rest
// tells the next writer of the target whose leftovers it finds.

#include <string>
#include <vector>

namespace tessera {

/// A new one. Throws InvalidInput where the system gives no random numbers.
std::string new_temporary_name(const std::string& target);

/// All that lie in the target's folder, whatever they are; none where it cannot be read.
std::vector<std::string> temporary_names_of(const std::string& target);

}  // namespace tessera

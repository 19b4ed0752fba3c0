#pragma once
// What a user may have meant by a word that nobody knows: an option, a command, a key, a model.
//
// Example:
//   throw_error<InvalidInput>("[model] \"{}\" is not known{}; known: {}", name,
//                             did_you_mean(name, known), joined(known));

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Letters to add, leave out, replace or swap with their neighbour to make one word the other.
int edit_distance(std::string_view a, std::string_view b);

/// The known word that is nearest to this one, the first of several; empty where none is near: more
/// than a third of the letters would change. Capitals, and - for _, count as the same.
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

/// " (did you mean --learning-rate?)", or nothing.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

}  // namespace tessera

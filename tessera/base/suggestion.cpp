#include "tessera/base/suggestion.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {
namespace {

/// Longer words are not typed by hand, and the distance takes time with the square of the length.
constexpr size_t kMaxLetters = 100;

/// What is compared: "--Batch_size" is "batch-size".
std::string letters_of(const std::string& word) {
  std::string letters = lower_case(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  std::replace(letters.begin(), letters.end(), '_', '-');
  return letters;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Rows of the table of distances between the beginnings of a and b: i - 2, i - 1 and i letters.
  std::vector<int> two_before, before, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    two_before = std::move(before);
    before = row;
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, before[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
  }
  return row.back();
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
  const std::string letters = letters_of(word);
  if (letters.empty() || letters.size() > kMaxLetters) return "";
  std::string nearest;
  int least = std::max(1, static_cast<int>(letters.size()) / 3) + 1;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(letters, letters_of(candidate));
    // All letters replaced is another word, however short.
    if (distance >= least || distance >= static_cast<int>(letters.size())) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "" : " (did you mean " + nearest + "?)";
}

}  // namespace tessera

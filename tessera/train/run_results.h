#pragma once
// What a run has reached. Every checkpoint records it, so that a start that finds nothing left to
// do can say how the run ended.

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "tessera/train/validator.h"

namespace tessera {

struct RunResults {
  double loss = NAN;                                     // of the last step; NaN: not known
  std::optional<ValidationResult> validation;            // the last one
  std::map<std::string, ValidationResult> targets = {};  // the same of other domains, by name
};

/// An object with "loss" and, where there was a validation, "validation": its "loss" and the scores
/// that it has (all_scores()). "target_validations" has those of other domains by their names.
/// Numbers that are not finite are null.
std::string to_json(const RunResults& results);

/// What to_json() wrote; scores of single classes are not in it. Throws InvalidInput for another
/// text.
RunResults parse_results(const std::string& json);

}  // namespace tessera

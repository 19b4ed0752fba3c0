#pragma once
// The commands that write files, each with its outputs, and what they hold where nobody disturbs.

#include <map>
#include <string>
#include <vector>

#include "tests/attack/writers/child.h"

namespace tessera::attack {

struct Output {
  std::string name;  // in the folder in which the command runs
  bool repeatable;   // holds the same bytes in every run
};

struct Job {
  Words words;
  std::vector<Output> outputs;
};

/// All commands that write files. Cheap: each takes about a second.
const std::vector<Job>& jobs();
/// Of jobs(), by its command.
const Job& job(const std::string& command);

/// Lays what the commands read into the folder: weights.safetensors.
void prepare_inputs(const std::string& folder);

/// What the repeatable outputs hold after an undisturbed run, by name.
const std::map<std::string, std::string>& undisturbed(const Job& job);

}  // namespace tessera::attack

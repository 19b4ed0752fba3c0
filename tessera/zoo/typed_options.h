#pragma once
// Options with their type and legal range, stated once: the help shows what the reader checks.
//
// Example:
//   constexpr IntegerOption kDepth{"depth", "number of blocks", 1, 12};
//   ModelInfo{.options = {kDepth.info(4)}, ...}
//   const int64_t depth = kDepth.read(options);

#include <fmt/format.h>

#include "tessera/zoo/zoo.h"

namespace tessera {

struct IntegerOption {
  const char* name;
  const char* meaning;
  int64_t low;
  int64_t high;

  OptionInfo info(int64_t default_value) const {
    return {name, std::to_string(default_value), fmt::format("{}; {} to {}", meaning, low, high)};
  }
  int64_t read(const ModelOptions& options) const { return options.integer(name, low, high); }
};

struct RealOption {
  const char* name;
  const char* meaning;
  double low;
  double high;

  OptionInfo info(double default_value) const {
    return {name, fmt::format("{}", default_value),
            fmt::format("{}; {} to {}", meaning, low, high)};
  }
  double read(const ModelOptions& options) const { return options.real(name, low, high); }
};

inline constexpr IntegerOption kClasses{"classes", "number of classes", 1, 65536};

}  // namespace tessera

#include "tessera/images/pixel_type.h"

#include <fmt/ranges.h>

#include <array>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/suggestion.h"

namespace tessera {
namespace {

struct NameAndBytes {
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<NameAndBytes, 11> kPixelTypes{{{"uint8", 1},
                                                    {"int8", 1},
                                                    {"uint16", 2},
                                                    {"int16", 2},
                                                    {"uint32", 4},
                                                    {"int32", 4},
                                                    {"uint64", 8},
                                                    {"int64", 8},
                                                    {"float16", 2},
                                                    {"float32", 4},
                                                    {"float64", 8}}};

}  // namespace

int64_t bytes_of(PixelType type) { return kPixelTypes[static_cast<size_t>(type)].bytes; }

std::string_view name_of(PixelType type) { return kPixelTypes[static_cast<size_t>(type)].name; }

PixelType pixel_type_called(std::string_view name, std::string_view place) {
  std::vector<std::string> known;
  for (size_t i = 0; i < kPixelTypes.size(); ++i) {
    if (kPixelTypes[i].name == name) return static_cast<PixelType>(i);
    known.emplace_back(kPixelTypes[i].name);
  }
  throw_error<InvalidInput>("[{}] '{}' is not a type of pixels{}; legal: {}", place, name,
                            did_you_mean(std::string(name), known), fmt::join(known, ", "));
}

}  // namespace tessera

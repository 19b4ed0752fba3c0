#include "tests/attack/faults/damage.h"

#include <fmt/format.h>

#include <filesystem>

namespace tessera {

void damage_file(Scene& scene, const std::string& path) {
  std::string bytes = read_file(path);
  const int64_t place = bytes.empty() ? 0 : scene.below(bytes.size());
  const int64_t kind = scene.below(7);
  scene.note(fmt::format("damage {} at byte {} of {} in {}", kind, place, bytes.size(), path));
  switch (kind) {
    case 0:
      if (!bytes.empty()) bytes[place] ^= static_cast<char>(1 << scene.below(8));
      break;
    case 1:
      bytes.resize(place);
      break;
    case 2:
      bytes.clear();
      break;
    case 3:
      std::filesystem::remove(path);
      return;
    case 4:
      bytes += bytes.substr(place);
      break;
    case 5:
      for (size_t i = place; i < bytes.size() && i < static_cast<size_t>(place) + 64; ++i)
        bytes[i] = static_cast<char>(scene.below(256));
      break;
    default:
      bytes.assign(scene.below(2000), static_cast<char>(scene.below(256)));
  }
  write_file(path, bytes);
}

}  // namespace tessera

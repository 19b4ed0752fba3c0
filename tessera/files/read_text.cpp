#include "tessera/files/read_text.h"

#include "tessera/base/error.h"
#include "tessera/files/input_file.h"

namespace tessera {

std::string read_text(const std::string& path, const std::string& place, uint64_t max_bytes) {
  const InputFile file(path, place);
  if (file.size() > max_bytes)
    throw_error<InvalidInput>(
        "[{}] {} has {} bytes, more than the {} that are read; it is not a file of this kind",
        place, path, file.size(), max_bytes);
  std::string text(file.size(), '\0');
  file.read_at(0, text.data(), text.size());
  return text;
}

}  // namespace tessera

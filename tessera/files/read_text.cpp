#include "tessera/files/read_text.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "tessera/base/error.h"

namespace tessera {

std::string read_text(const std::string& path, const std::string& what) {
  const auto fail = [&](int error_number) {
    throw_error<InvalidInput>("[{}] cannot read {}: {}; give a text file that you may read", what,
                              path, std::generic_category().message(error_number));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (!file) fail(errno);
  std::string text;
  char block[1 << 14];
  while (const size_t bytes = std::fread(block, 1, sizeof(block), file.get()))
    text.append(block, bytes);
  if (std::ferror(file.get())) fail(errno);  // a folder opens, and fails when it is read
  return text;
}

}  // namespace tessera

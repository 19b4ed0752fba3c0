#include "tessera/files/atomic_file.h"

#include "tessera/files/temporary_file.h"

namespace tessera {

void write_file_atomically(const std::string& path, const std::function<void(OutputFile&)>& fill) {
  TemporaryFile temporary(path);
  fill(temporary.file());
  temporary.commit();
}

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, [&](OutputFile& file) { file.append(content); });
}

}  // namespace tessera

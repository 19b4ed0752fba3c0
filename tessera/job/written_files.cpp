#include "tessera/job/written_files.h"

#include <filesystem>
#include <map>

#include "tessera/base/error.h"
#include "tessera/files/plain_path.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Files and folders that samples are read from, each with its name in messages.
std::map<fs::path, std::string> files_of_samples(const Dataset& data) {
  std::map<fs::path, std::string> files;
  std::string last;  // many samples may lie in one file
  for (int64_t sample = 0; sample < data.size(); ++sample)
    for (const std::string& file : data.files_of(sample))
      if (file != last) files.emplace(plain_path(last = file), file);
  return files;
}

}  // namespace

void check_images_stay(const Dataset& data, const std::vector<WrittenFile>& files) {
  const std::map<fs::path, std::string> read = files_of_samples(data);
  std::map<fs::path, const WrittenFile*> written;
  for (const WrittenFile& file : files) {
    const fs::path path = plain_path(file.path);
    if (const auto [other, is_new] = written.emplace(path, &file); !is_new)
      throw_error<InvalidInput>("[{}] {} is written by {}, too; give each its own file or folder",
                                file.option, file.path, other->second->option);
    for (fs::path part = path; part.has_relative_path(); part = part.parent_path())
      if (const auto found = read.find(part); found != read.end())
        throw_error<InvalidInput>(
            "[{}] {} would overwrite what is read, {}; give another name or folder", file.option,
            file.path, found->second);
  }
}

}  // namespace tessera

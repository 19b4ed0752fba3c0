#include "tessera/images/array_writer.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/images/formats.h"

namespace tessera {
namespace {

struct WrittenFormat {
  std::vector<std::string> endings;
  std::unique_ptr<ArrayWriter> (*write)(const std::string&, const ArrayInfo&, const std::string&);
};

const std::vector<WrittenFormat>& written_formats() {
  static const std::vector<WrittenFormat> all{
      {{".npy"}, write_npy},
      {{".tif", ".tiff", ".btf"}, write_tiff},
      {{".png"}, write_png_array},
      {{".nii", ".nii.gz"}, write_nifti},
  };
  return all;
}

const WrittenFormat* written_format_of(const std::string& path) {
  const std::string name = lower_case(path);
  for (const WrittenFormat& format : written_formats())
    for (const std::string& ending : format.endings)
      if (name.ends_with(ending)) return &format;
  return nullptr;
}

const WrittenFormat& checked_format_of(const std::string& path) {
  const WrittenFormat* const format = written_format_of(path);
  if (format == nullptr)
    throw_error<InvalidInput>(
        "[file] cannot write {}: the ending is not one of an image; known: {}", path,
        joined(written_endings(), " "));
  return *format;
}

}  // namespace

std::unique_ptr<ArrayWriter> create_array_writer(const std::string& path, const ArrayInfo& info) {
  return checked_format_of(path).write(path, info, "");
}

std::unique_ptr<ArrayWriter> join_array_writer(const std::string& path,
                                               const std::string& temporary,
                                               const ArrayInfo& info) {
  TESSERA_CHECK(!temporary.empty(), "[file] {} is joined without a name", path);
  return checked_format_of(path).write(path, info, temporary);
}

bool is_written_path(const std::string& path) { return written_format_of(path) != nullptr; }

std::vector<std::string> written_endings() {
  std::vector<std::string> endings;
  for (const WrittenFormat& format : written_formats())
    endings.insert(endings.end(), format.endings.begin(), format.endings.end());
  return endings;
}

}  // namespace tessera

#include "tessera/images/array_writer.h"

#include "tessera/base/error.h"
#include "tessera/images/endings.h"
#include "tessera/images/formats.h"

namespace tessera {
namespace {

struct WrittenFormat {
  std::vector<std::string_view> endings;
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

const WrittenFormat& written_format_of(const std::string& path) {
  const WrittenFormat* const format = format_by_ending(written_formats(), path).first;
  if (format == nullptr)
    throw_error<InvalidInput>(
        "[file] cannot write {}: the ending is not one of an image; known: {}", path,
        joined(written_endings(), " "));
  return *format;
}

}  // namespace

std::unique_ptr<ArrayWriter> create_array_writer(const std::string& path, const ArrayInfo& info) {
  return written_format_of(path).write(path, info, "");
}

std::unique_ptr<ArrayWriter> join_array_writer(const std::string& path,
                                               const std::string& temporary,
                                               const ArrayInfo& info) {
  TESSERA_CHECK(!temporary.empty(), "[file] {} is joined without a name", path);
  return written_format_of(path).write(path, info, temporary);
}

std::vector<std::string> written_endings() { return all_endings(written_formats()); }

}  // namespace tessera

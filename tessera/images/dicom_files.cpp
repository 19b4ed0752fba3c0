#include "tessera/images/dicom_files.h"

#include <algorithm>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/input_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kDicomMarkAt = 128;
constexpr std::string_view kDicomMark = "DICM";

bool bears_mark(const fs::path& path) {
  const InputFile file(path.string(), "dicom");
  std::string mark(kDicomMark.size(), '\0');
  if (file.size() < kDicomMarkAt + mark.size()) return false;
  file.read_at(kDicomMarkAt, mark.data(), mark.size());
  return mark == kDicomMark;
}

bool is_dicom_file(const fs::directory_entry& entry) {
  std::error_code error;
  const std::string name = entry.path().filename().string();
  if (!entry.is_regular_file(error) || name.starts_with('.') || name == "DICOMDIR") return false;
  // Names such as 1.2.840.113619.2.55 end in digits, which is not an ending.
  const std::string ending = lower_case(entry.path().extension().string());
  const bool digits = std::ranges::all_of(ending.substr(ending.empty() ? 0 : 1), [](char letter) {
    return letter >= '0' && letter <= '9';
  });
  return ending == ".dcm" || (digits && bears_mark(entry.path()));
}

}  // namespace

bool is_dicom_folder(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
    if (is_dicom_file(*at)) return true;
  return false;
}

std::vector<std::string> dicom_files_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
    if (is_dicom_file(*at)) files.push_back(at->path().string());
  if (files.empty())
    throw_error<InvalidInput>("[dicom] {}: the folder holds no DICOM files (.dcm)", path);
  std::ranges::sort(files);
  return files;
}

}  // namespace tessera

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/checkpoint/safetensors.h"
#include "tessera/files/mapped_file.h"

namespace tessera {
namespace {

constexpr uint64_t kLengthBytes = 8;
// The format's own limit. It keeps a damaged length from being taken for one.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

std::string_view header_text(const MappedFile& file) {
  if (file.size() < kLengthBytes)
    throw_error<InvalidInput>(
        "{} bytes are too few for a header: the file is truncated or not of "
        "this format",
        file.size());
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kMaxHeaderBytes)
    throw_error<InvalidInput>(
        "a header of {} bytes is more than the format's {}: the file is not of "
        "this format",
        length, kMaxHeaderBytes);
  if (length > file.size() - kLengthBytes)
    throw_error<InvalidInput>("the header has {} bytes, but only {} follow: the file is truncated",
                              length, file.size() - kLengthBytes);
  return {file.data() + kLengthBytes, length};
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), file_(std::make_shared<MappedFile>(path)) {
  try {
    const std::string_view text = header_text(*file_);
    const uint64_t header_bytes = kLengthBytes + text.size();
    header_ = parse_header(text, file_->size() - header_bytes);
    data_ = file_->data() + header_bytes;
    check_booleans();
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[safetensors] {}: {}", path, error.what());
  }
}

uint64_t SafetensorsFile::size() const { return file_->size(); }

// A bool that is neither 0 nor 1 is undefined behaviour wherever it is read.
void SafetensorsFile::check_booleans() const {
  for (const TensorEntry& entry : header_.entries) {
    if (entry.type != at::ScalarType::Bool) continue;
    for (uint64_t i = entry.begin; i < entry.end; ++i)
      if (static_cast<unsigned char>(data_[i]) > 1)
        throw_error<InvalidInput>("tensor {} is BOOL, but its byte {} is {}", entry.name,
                                  i - entry.begin, static_cast<unsigned char>(data_[i]));
  }
}

at::Tensor SafetensorsFile::tensor(const std::string& name) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr)
    throw_error<InvalidInput>("[safetensors] {}: there is no tensor {}", path_, name);
  const auto options = at::TensorOptions().dtype(entry->type);
  const uint64_t bytes = entry->end - entry->begin;
  if (bytes == 0) return at::empty(entry->shape, options);
  char* data = data_ + entry->begin;
  if (reinterpret_cast<uintptr_t>(data) % c10::elementSize(entry->type) != 0) {
    at::Tensor aligned = at::empty(entry->shape, options);
    std::memcpy(aligned.data_ptr(), data, bytes);
    return aligned;
  }
  return at::from_blob(
      data, entry->shape, [file = file_](void*) {}, options);
}

const TensorEntry* SafetensorsFile::find(const std::string& name) const {
  const auto place = std::lower_bound(
      header_.entries.begin(), header_.entries.end(), name,
      [](const TensorEntry& entry, const std::string& key) { return entry.name < key; });
  return place != header_.entries.end() && place->name == name ? &*place : nullptr;
}

}  // namespace tessera

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/checkpoint/safetensors.h"
#include "tessera/files/json.h"

namespace tessera {
namespace {

constexpr uint64_t kLengthBytes = 8;
// The format's own limit. It keeps a damaged length from being taken for one.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

std::string header_text(const InputFile& file) {
  if (file.size() < kLengthBytes)
    throw_error<InvalidInput>(
        "{} bytes are too few for a header: the file is truncated or not of "
        "this format",
        file.size());
  uint64_t length = 0;
  file.read_at(0, &length, kLengthBytes);
  if (length > kMaxHeaderBytes)
    throw_error<InvalidInput>(
        "a header of {} bytes is more than the format's {}: the file is not of "
        "this format",
        length, kMaxHeaderBytes);
  if (length > file.size() - kLengthBytes)
    throw_error<InvalidInput>("the header has {} bytes, but only {} follow: the file is truncated",
                              length, file.size() - kLengthBytes);
  std::string text(length, '\0');
  file.read_at(kLengthBytes, text.data(), text.size());
  return text;
}

/// A bool that is neither 0 nor 1 is undefined behaviour wherever it is read.
void check_booleans(const std::string& path, const std::string& name, const at::Tensor& tensor) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.data_ptr());
  for (int64_t i = 0; i < tensor.numel(); ++i)
    if (bytes[i] > 1)
      throw_error<InvalidInput>("[safetensors] {}: tensor {} is BOOL, but its byte {} is {}", path,
                                name, i, bytes[i]);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path, "safetensors") {
  try {
    const std::string text = header_text(file_);
    data_begin_ = kLengthBytes + text.size();
    header_ = parse_header(text, file_.size() - data_begin_);
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[safetensors] {}: {}", path, cut_short(error.what()));
  }
}

at::Tensor SafetensorsFile::tensor(const std::string& name) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr)
    throw_error<InvalidInput>("[safetensors] {}: there is no tensor {}", file_.path(), name);
  at::Tensor tensor = at::empty(entry->shape, at::TensorOptions().dtype(entry->type));
  if (tensor.numel() > 0)
    file_.read_at(data_begin_ + entry->begin, tensor.data_ptr(), entry->end - entry->begin);
  if (entry->type == at::ScalarType::Bool) check_booleans(file_.path(), name, tensor);
  return tensor;
}

const TensorEntry* SafetensorsFile::find(const std::string& name) const {
  const auto place = std::lower_bound(
      header_.entries.begin(), header_.entries.end(), name,
      [](const TensorEntry& entry, const std::string& key) { return entry.name < key; });
  return place != header_.entries.end() && place->name == name ? &*place : nullptr;
}

}  // namespace tessera

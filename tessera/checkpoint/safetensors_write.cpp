#include <algorithm>
#include <bit>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/checkpoint/safetensors.h"
#include "tessera/files/atomic_file.h"

namespace tessera {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are written as they lie in memory");

NamedTensors in_file_order(NamedTensors tensors) {
  for (const auto& [name, tensor] : tensors)
    TESSERA_CHECK(tensor.defined(), "tensor {} is undefined", name);
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const size_t a_size = a.second.element_size(), b_size = b.second.element_size();
    return a_size != b_size ? a_size > b_size : a.first < b.first;
  });
  return tensors;
}

SafetensorsHeader describe(const NamedTensors& tensors, const Metadata& metadata) {
  SafetensorsHeader header;
  header.metadata = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const uint64_t bytes = static_cast<uint64_t>(tensor.numel()) * tensor.element_size();
    header.entries.push_back({name, tensor.scalar_type(),
                              Shape(tensor.sizes().begin(), tensor.sizes().end()), offset,
                              offset + bytes});
    offset += bytes;
  }
  return header;
}

std::string header_with_length(const NamedTensors& tensors, const Metadata& metadata) {
  const std::string header = format_header(describe(tensors, metadata));
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes.append(header);
}

}  // namespace

void write_safetensors(OutputFile& file, const NamedTensors& tensors, const Metadata& metadata) {
  const NamedTensors ordered = in_file_order(tensors);
  file.append(header_with_length(ordered, metadata));
  for (const auto& [name, tensor] : ordered) {
    const at::Tensor dense = tensor.detach().cpu().contiguous();
    if (dense.numel() > 0) file.append(dense.data_ptr(), dense.nbytes());
  }
}

void write_safetensors(const std::string& path, const NamedTensors& tensors,
                       const Metadata& metadata) {
  try {
    write_file_atomically(path,
                          [&](OutputFile& file) { write_safetensors(file, tensors, metadata); });
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[safetensors] {}: {}", path, error.what());
  }
}

}  // namespace tessera

#pragma once
// Reads and writes the safetensors format, which PyTorch's users exchange weights in:
//
//   8 bytes: length N of the header, little-endian
//   N bytes: JSON (see safetensors_header.h), padded with spaces
//   the rest: the tensors' bytes, row-major, little-endian, without gaps
//
// Data is written in the order of falling element size, then of names, so that every tensor is
// aligned to its element; a file of one type is in the order of names. The reader trusts nothing: a
// file that breaks a rule of the format is InvalidInput with the file's name and the fault.
//
// Example:
//   write_safetensors("w.safetensors", {{"conv.weight", weight}}, {{"format", "pt"}});
//   SafetensorsFile file("w.safetensors");
//   at::Tensor weight = file.tensor("conv.weight");

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/checkpoint/safetensors_header.h"
#include "tessera/files/output_file.h"

namespace tessera {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Atomically. Tensors of any strides and device; each is copied to dense host memory in its turn.
void write_safetensors(const std::string& path, const NamedTensors& tensors,
                       const Metadata& metadata = {});
/// The same into an open file.
void write_safetensors(OutputFile& file, const NamedTensors& tensors,
                       const Metadata& metadata = {});

class MappedFile;

class SafetensorsFile {
 public:
  /// Maps the file and checks all of its header.
  explicit SafetensorsFile(const std::string& path);

  /// In the order of names.
  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  const Metadata& metadata() const { return header_.metadata; }
  bool contains(const std::string& name) const { return find(name) != nullptr; }
  /// The bytes of the whole file.
  uint64_t size() const;
  /// A tensor over the mapped file, which lives as long as the tensor. Writing to it changes
  /// neither the file nor a tensor from another SafetensorsFile. Throws InvalidInput for an unknown
  /// name.
  at::Tensor tensor(const std::string& name) const;

 private:
  const TensorEntry* find(const std::string& name) const;
  void check_booleans() const;

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  SafetensorsHeader header_;
  char* data_ = nullptr;  // after the header
};

}  // namespace tessera

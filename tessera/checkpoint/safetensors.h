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

#include <string>
#include <utility>
#include <vector>

#include "tessera/checkpoint/safetensors_header.h"
#include "tessera/files/input_file.h"
#include "tessera/files/output_file.h"

namespace tessera {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Atomically. Tensors of any strides and device; each is copied to dense host memory in its turn.
void write_safetensors(const std::string& path, const NamedTensors& tensors,
                       const Metadata& metadata = {});
/// The same into an open file.
void write_safetensors(OutputFile& file, const NamedTensors& tensors,
                       const Metadata& metadata = {});

class SafetensorsFile {
 public:
  /// Reads the header and checks all of it.
  explicit SafetensorsFile(const std::string& path);

  /// In the order of names.
  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  const Metadata& metadata() const { return header_.metadata; }
  bool contains(const std::string& name) const { return find(name) != nullptr; }
  /// The bytes of the whole file.
  uint64_t size() const { return file_.size(); }
  /// Reads a tensor into memory of its own. Throws InvalidInput for an unknown name, and where the
  /// file has changed so that the bytes are not there or are no values of the type.
  at::Tensor tensor(const std::string& name) const;

 private:
  const TensorEntry* find(const std::string& name) const;

  InputFile file_;
  SafetensorsHeader header_;
  uint64_t data_begin_ = 0;  // after the header
};

}  // namespace tessera

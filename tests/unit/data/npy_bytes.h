#pragma once
// .npy files made by hand, byte by byte, so that the reader is not tested against our own writer
// alone.

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera {

/// Version 1.0 (or 2.0) around a dictionary, without padding.
inline std::string npy_bytes(const std::string& dictionary, const std::string& data,
                             int version = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes += static_cast<char>(dictionary.size() >> (8 * i) & 0xff);
  return bytes + dictionary + data;
}

template <class T>
std::string npy_of(const std::string& descr, const std::string& shape, const std::vector<T>& data) {
  std::string raw(data.size() * sizeof(T), '\0');
  if (!data.empty()) std::memcpy(raw.data(), data.data(), raw.size());
  return npy_bytes("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n",
                   raw);
}

}  // namespace tessera

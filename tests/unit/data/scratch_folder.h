#pragma once
// A folder of its own for a test's files, gone with it; and .npy files made by hand, byte by byte,
// so that the reader is not tested against our own writer alone.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tessera {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = testing::TempDir() + "tessera_data_XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder");
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

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

/// The message of the exception of this kind that `body` throws; fails where it throws none.
template <class Kind, class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Kind& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace tessera

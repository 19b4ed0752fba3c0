#pragma once
// A gzip file as a stream of its content: several members one after the other included, as bgzip
// writes them. Each member's checksum is verified where the stream has come to its end.
//
// Example:
//   GzipStream stream(file, "nifti");
//   const size_t got = stream.read(buffer, sizeof(buffer));   // 0: the end

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tessera/files/input_file.h"

namespace tessera {

/// A byte of deflate holds at most this many of the content.
constexpr uint64_t kMostBytesPerPackedByte = 1032;

class GzipStream {
 public:
  /// The file stays the caller's. `place` is for messages.
  GzipStream(const InputFile& file, std::string place);
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream();

  /// As many of the next bytes as there are, at most `bytes`. Throws InvalidInput for a file that
  /// is not gzip, damaged or cut off.
  size_t read(void* to, size_t bytes);

 private:
  struct State;
  void refill();

  const InputFile& file_;
  const std::string place_;
  uint64_t position_ = 0;  // of what is read next from the file
  std::unique_ptr<State> state_;
};

}  // namespace tessera

#pragma once
// Formats that are decoded from the top to the bottom only (PNG, JPEG): rows before a box are
// decoded and dropped. A decoder that has come to some row is kept for the next box below it, so
// that an image that is read in strips is decoded once.
//
// Memory is that of a row, and of what the library holds itself.

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tessera/images/array_file.h"

namespace tessera {

/// One pass over the rows of an image. Not thread-safe.
class RowDecoder {
 public:
  virtual ~RowDecoder() = default;
  /// The next row, as dense elements. Throws InvalidInput.
  virtual void read_row(char* to) = 0;
};

/// Reads boxes of an image of axes "YX" or "YXC" by decoders.
class RowReader {
 public:
  using Open = std::function<std::unique_ptr<RowDecoder>()>;
  explicit RowReader(Open open) : open_(std::move(open)) {}
  /// As ArrayFile::read, of a file with this info.
  void read(const ArrayInfo& info, const Box& box, void* to) const;

 private:
  struct Started {
    std::unique_ptr<RowDecoder> decoder;
    int64_t next_row = 0;
  };
  Started take(int64_t first_row) const;

  const Open open_;
  mutable std::mutex mutex_;
  mutable std::vector<Started> idle_;
};

}  // namespace tessera

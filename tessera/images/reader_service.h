#pragma once
// What readers are asked and answer (reader_process.h), both ends of it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/images/array_file.h"
#include "tessera/images/reader_process.h"

namespace tessera {

/// The most that one request may take.
constexpr int kReaderSeconds = 120;

struct ReaderRequest {
  enum class Wanted : uint8_t { kInfo, kBox };

  std::vector<uint64_t> closed = {};  // numbers of files to close first
  uint64_t number = 0;           // of the opened file: a reader that has it open need not open it
  ArrayOpener opener = nullptr;  // forked processes have the same code at the same place
  int64_t memory_bytes = 0;      // for a file of no size
  std::string folder = {};       // where relative paths begin
  std::string path = {};
  ArrayOptions options = {};
  Wanted wanted = Wanted::kInfo;
  Box box = {};
  /// Of the array when it was opened: a file that is another one by now is refused.
  Shape shape = {};
  PixelType type = PixelType::kUint8;
};

struct ReaderAnswer {
  enum class Kind : uint8_t { kFine, kInvalidInput, kUnsupported, kInternal };
  Kind kind = Kind::kFine;
  std::string words = {};  // the info, or what is wrong
};

/// Sends the request. Where the answer is fine, the box's bytes, of which there are `bytes`, follow
/// into `to`. Nothing where the reader is gone.
std::optional<ReaderAnswer> exchange_with_reader(int socket, const ReaderRequest& request, void* to,
                                                 size_t bytes);

/// Throws InvalidInput with the path for words that a sound reader does not say.
ArrayInfo parse_info(const std::string& words, const std::string& path);
void throw_what_reader_threw(const ReaderAnswer& answer, const std::string& path);

/// The life of a reader: answers requests until the other end is gone.
void serve_reader_requests(int socket);

}  // namespace tessera

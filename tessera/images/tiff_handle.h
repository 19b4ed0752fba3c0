#pragma once
// libtiff on an InputFile. A handle of libtiff is for one thread at a time and remembers where it
// is, so a file has a pool of them, which grows with the threads that read at the same time.
//
// Nothing is mapped and nothing is printed: libtiff reads through InputFile, whose refusals pass
// through, and what it complains of becomes the reason in our own message. No buffer of libtiff's
// is larger than kMaxTiffBytes, whatever a file claims.
//
// Example:
//   TiffPool pool(InputFile("a.tif", "tiff"));
//   const TiffPool::Loan handle = pool.borrow();
//   handle->go_to(offset);
//   if (TIFFReadEncodedTile(handle->get(), ...) < 0) handle->refuse("tile 3 cannot be read");

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/files/input_file.h"

struct tiff;  // libtiff calls it TIFF

namespace tessera {

constexpr int64_t kMaxTiffBytes = int64_t{1} << 30;

/// Where libtiff reads, and what it has said; its callbacks get a pointer to it.
struct TiffStream {
  const InputFile* file;
  uint64_t position = 0;
  std::array<char, 320> complaint = {};  // libtiff's first one
  std::exception_ptr failure = nullptr;  // InputFile's, which must not pass through C
  bool warned = false;
};

/// Rows of a strip are decoded in their order; the next one to come.
struct TiffScan {
  uint64_t directory = 0;
  int64_t plane = 0;
  int64_t next_row = -1;
  bool operator==(const TiffScan&) const = default;
};

class TiffHandle {
 public:
  /// Throws InvalidInput for what is not a TIFF.
  explicit TiffHandle(const InputFile& file);
  TiffHandle(const TiffHandle&) = delete;
  TiffHandle& operator=(const TiffHandle&) = delete;
  ~TiffHandle();

  tiff* get() const { return tiff_; }
  /// The next directory of the main chain; false after the last.
  bool next_directory();
  /// The directory at an offset of the file; false where the handle is there already.
  bool go_to(uint64_t directory);
  /// The next go_to() reads the directory again, and begins with a new decoder.
  void forget_directory() { directory_ = 0; }
  /// Forgets what libtiff has complained of without failing.
  void forget_complaints() { stream_->complaint[0] = 0; }
  /// Whether libtiff has warned of what was read since this was called last.
  bool takes_warning() { return std::exchange(stream_->warned, false); }
  /// Throws InvalidInput that says what cannot be done and libtiff's reason; what the file itself
  /// has refused comes first.
  [[noreturn]] void refuse(std::string_view what);

  TiffScan scan = {};

 private:
  const std::unique_ptr<TiffStream> stream_;
  tiff* tiff_ = nullptr;
  uint64_t directory_ = 0;
};

class TiffPool {
 public:
  explicit TiffPool(InputFile file) : file_(std::move(file)) {}
  const InputFile& file() const { return file_; }

  /// Gives the handle back at its end.
  class Loan {
   public:
    Loan(const TiffPool& pool, std::unique_ptr<TiffHandle> handle)
        : pool_(pool), handle_(std::move(handle)) {}
    Loan(const Loan&) = delete;
    ~Loan();
    TiffHandle* operator->() const { return handle_.get(); }
    TiffHandle& operator*() const { return *handle_; }

   private:
    const TiffPool& pool_;
    std::unique_ptr<TiffHandle> handle_;
  };
  Loan borrow() const;

 private:
  const InputFile file_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<TiffHandle>> idle_;
};

}  // namespace tessera

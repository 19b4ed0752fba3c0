#include "tessera/images/tiff_handle.h"

#include <tiffio.h>

#include <algorithm>
#include <cstdio>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr size_t kMaxIdleHandles = 8;

TiffStream& tiff_stream(thandle_t handle) { return *static_cast<TiffStream*>(handle); }

// What lies after the end of the file is not there: libtiff gets fewer bytes and complains.
tmsize_t read_tiff(thandle_t handle, void* to, tmsize_t bytes) {
  TiffStream& stream = tiff_stream(handle);
  const uint64_t size = stream.file->size();
  if (bytes <= 0 || stream.position >= size) return 0;
  const uint64_t count = std::min(static_cast<uint64_t>(bytes), size - stream.position);
  try {
    stream.file->read_at(stream.position, to, count);
  } catch (...) {
    stream.failure = std::current_exception();
    return 0;
  }
  stream.position += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t refuse_tiff_write(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  TiffStream& stream = tiff_stream(handle);
  const uint64_t from = whence == SEEK_CUR   ? stream.position
                        : whence == SEEK_END ? stream.file->size()
                                             : 0;
  return stream.position = from + offset;
}

int close_tiff(thandle_t) { return 0; }

toff_t tiff_size(thandle_t handle) { return tiff_stream(handle).file->size(); }

int keep_complaint(TIFF*, void* user, const char* module, const char* format, va_list arguments) {
  auto& complaint = static_cast<TiffStream*>(user)->complaint;
  if (complaint[0] != 0) return 1;
  const int length =
      module == nullptr ? 0 : std::snprintf(complaint.data(), complaint.size(), "%.40s: ", module);
  std::vsnprintf(complaint.data() + length, complaint.size() - length, format, arguments);
  return 1;
}

int note_warning(TIFF*, void* user, const char*, const char*, va_list) {
  static_cast<TiffStream*>(user)->warned = true;
  return 1;
}

}  // namespace

TiffHandle::TiffHandle(const InputFile& file) : stream_(new TiffStream{.file = &file}) {
  TIFFOpenOptions* const options = TIFFOpenOptionsAlloc();
  if (options == nullptr) throw std::bad_alloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, kMaxTiffBytes);
  TIFFOpenOptionsSetErrorHandlerExtR(options, keep_complaint, stream_.get());
  TIFFOpenOptionsSetWarningHandlerExtR(options, note_warning, stream_.get());
  // h: the directories are read by calls of their own. m: nothing is mapped.
  tiff_ = TIFFClientOpenExt(file.path().c_str(), "rhm", stream_.get(), read_tiff, refuse_tiff_write,
                            seek_tiff, close_tiff, tiff_size, nullptr, nullptr, options);
  TIFFOpenOptionsFree(options);
  if (tiff_ == nullptr) refuse("is not a TIFF file, or a damaged one");
}

TiffHandle::~TiffHandle() {
  if (tiff_ != nullptr) TIFFClose(tiff_);
}

bool TiffHandle::next_directory() {
  scan = {};
  if (directory_ != 0 && TIFFLastDirectory(tiff_) != 0) return false;
  if (TIFFReadDirectory(tiff_) == 0) refuse("has a damaged directory");
  directory_ = TIFFCurrentDirOffset(tiff_);
  return true;
}

bool TiffHandle::go_to(uint64_t directory) {
  if (directory == directory_) return false;
  scan = {};
  directory_ = 0;  // unknown where this fails
  if (TIFFSetSubDirectory(tiff_, directory) == 0) refuse("has a damaged directory");
  directory_ = directory;
  return true;
}

void TiffHandle::refuse(std::string_view what) {
  if (stream_->failure) std::rethrow_exception(std::exchange(stream_->failure, nullptr));
  const std::string reason = stream_->complaint.data();
  throw_error<InvalidInput>("[tiff] {}: {}{}{}", stream_->file->path(), what,
                            reason.empty() ? "" : "; libtiff says: ", reason);
}

TiffPool::Loan TiffPool::borrow() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<TiffHandle> handle = std::move(idle_.back());
      idle_.pop_back();
      handle->forget_complaints();
      return {*this, std::move(handle)};
    }
  }
  return {*this, std::make_unique<TiffHandle>(file_)};
}

TiffPool::Loan::~Loan() {
  const std::lock_guard lock(pool_.mutex_);
  if (pool_.idle_.size() < kMaxIdleHandles) pool_.idle_.push_back(std::move(handle_));
}

}  // namespace tessera

#include <cstring>
#include <mutex>

#include "tessera/base/error.h"
#include "tessera/files/input_file.h"
#include "tessera/images/box_runs.h"
#include "tessera/images/flat_array.h"
#include "tessera/images/formats.h"
#include "tessera/images/png_calls.h"
#include "tessera/images/row_decoder.h"

namespace tessera {
namespace {

constexpr int64_t kMaxPngRowBytes = int64_t{1} << 30;
constexpr int64_t kMaxInterlacedBytes = int64_t{4} << 30;

/// What libpng reads from.
struct PngStream {
  const InputFile* file;
  uint64_t position = 0;
  PngFailure failure = {};
};

void read_png(png_structp png, png_bytep to, size_t bytes) {
  auto& stream = *static_cast<PngStream*>(png_get_io_ptr(png));
  if (bytes > stream.file->size() - stream.position) png_error(png, "the file ends too early");
  work_for_png(png, "the file cannot be read",
               [&] { stream.file->read_at(stream.position, to, bytes); });
  stream.position += bytes;
}

/// A file of libpng's that is open for one pass.
class PngDecoder final : public RowDecoder {
 public:
  explicit PngDecoder(const InputFile& file) : stream_(new PngStream{.file = &file}) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &stream_->failure, keep_png_error,
                                  drop_png_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    try {
      run([&] {
        png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);  // rows are limited by their bytes
        png_set_read_fn(png_, stream_.get(), read_png);
        png_read_info(png_, info_);
      });
    } catch (...) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw;
    }
  }
  PngDecoder(const PngDecoder&) = delete;
  ~PngDecoder() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t height() const { return png_get_image_height(png_, info_); }
  int samples() const { return png_get_channels(png_, info_); }
  int bits() const { return png_get_bit_depth(png_, info_); }
  bool interlaced() const { return png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE; }
  /// Pixels per metre, along y and x; 0 where the file does not say.
  std::pair<double, double> resolution() const {
    return {png_get_y_pixels_per_meter(png_, info_), png_get_x_pixels_per_meter(png_, info_)};
  }

  /// Numbers as they are stored: nothing is scaled, and a palette gives its indices.
  void start() {
    run([&] {
      png_set_packing(png_);
      if (png_get_bit_depth(png_, info_) == 16) png_set_swap(png_);
      passes_ = png_set_interlace_handling(png_);
      png_start_read_image(png_);
    });
  }
  void read_row(char* to) override {
    run([&] { png_read_row(png_, reinterpret_cast<png_bytep>(to), nullptr); });
  }
  /// All rows at once, which an interlaced file needs.
  void read_all(char* to, int64_t row_bytes) {
    const int64_t num_rows = height();
    for (int pass = 0; pass < passes_; ++pass)
      for (int64_t row = 0; row < num_rows; ++row) read_row(to + row * row_bytes);
  }

 private:
  template <class Call>
  void run(const Call& call) {
    if (guarded_png_call(png_, call)) return;
    if (stream_->failure.exception) std::rethrow_exception(stream_->failure.exception);
    throw_error<InvalidInput>("[png] {}: is not a PNG file, or a damaged one; libpng says: {}",
                              stream_->file->path(), stream_->failure.complaint.data());
  }

  const std::unique_ptr<PngStream> stream_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
};

class PngArrayFile final : public ArrayFile {
 public:
  explicit PngArrayFile(const std::string& path)
      : ArrayFile(path), file_(path, "png"), rows_([this] { return open(); }) {
    const PngDecoder decoder(file_);
    info_.axes = decoder.samples() > 1 ? "YXC" : "YX";
    info_.shape = {decoder.height(), decoder.width()};
    if (decoder.samples() > 1) info_.shape.push_back(decoder.samples());
    info_.type = decoder.bits() == 16 ? PixelType::kUint16 : PixelType::kUint8;
    const auto [y, x] = decoder.resolution();
    if (y > 0 && x > 0) info_.frame.spacing = {1000 / y, 1000 / x};
    const int64_t bytes = checked_array_bytes(shape(), type(), "png", path);
    if (bytes / shape()[0] > kMaxPngRowBytes)
      throw_error<InvalidInput>("[png] {}: a row has {} bytes; at most {} are read", path,
                                bytes / shape()[0], kMaxPngRowBytes);
    interlaced_ = decoder.interlaced();
    if (interlaced_ && bytes > kMaxInterlacedBytes)
      throw_error<InvalidInput>(
          "[png] {}: an interlaced image is decoded whole, and this one has {} bytes; at most {}: "
          "save it without interlacing",
          path, bytes, kMaxInterlacedBytes);
    info_.block = shape();
    info_.block[0] = 1;
  }

  void read(const Box& box, void* to) const override {
    if (!interlaced_) return rows_.read(info_, box, to);
    std::call_once(decoded_, [&] {
      const int64_t row_bytes = Box::whole(shape()).volume() * bytes_of(type()) / shape()[0];
      whole_.resize(static_cast<size_t>(row_bytes * shape()[0]));
      open()->read_all(whole_.data(), row_bytes);
    });
    copy_box(whole_.data(), shape(), box, bytes_of(type()), static_cast<char*>(to));
  }

 private:
  std::unique_ptr<PngDecoder> open() const {
    auto decoder = std::make_unique<PngDecoder>(file_);
    if (Shape{decoder->height(), decoder->width()} != Shape{shape()[0], shape()[1]} ||
        decoder->samples() != (shape().size() == 3 ? shape()[2] : 1) ||
        (decoder->bits() == 16) != (type() == PixelType::kUint16))
      throw_error<InvalidInput>("[png] {} has changed since it was opened", path());
    decoder->start();
    return decoder;
  }

  const InputFile file_;
  const RowReader rows_;
  bool interlaced_ = false;
  mutable std::once_flag decoded_;
  mutable std::vector<char> whole_;  // of an interlaced file
};

}  // namespace

std::unique_ptr<ArrayFile> open_png(const std::string& path, const ArrayOptions&) {
  return std::make_unique<PngArrayFile>(path);
}

}  // namespace tessera

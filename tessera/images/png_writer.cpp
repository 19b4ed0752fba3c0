#include <optional>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/files/input_file.h"
#include "tessera/images/formats.h"
#include "tessera/images/png_calls.h"
#include "tessera/images/shared_output.h"

namespace tessera {
namespace {

/// What libpng writes to.
struct PngSink {
  OutputFile* file;
  PngFailure failure = {};
};

void append_png(png_structp png, png_bytep data, size_t bytes) {
  auto& sink = *static_cast<PngSink*>(png_get_io_ptr(png));
  work_for_png(png, "the file cannot be written", [&] { sink.file->append(data, bytes); });
}

void flush_nothing(png_structp) {}

class PngEncoder {
 public:
  PngEncoder(OutputFile& file, const std::string& path) : sink_{.file = &file}, path_(path) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink_.failure, keep_png_error,
                                   drop_png_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_write_struct(&png_, nullptr);
      throw std::bad_alloc();
    }
  }
  PngEncoder(const PngEncoder&) = delete;
  ~PngEncoder() { png_destroy_write_struct(&png_, &info_); }

  void start(const ArrayInfo& array) {
    const std::vector<double>& spacing = array.frame.spacing;
    run([&] {
      png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
      png_set_write_fn(png_, &sink_, append_png, flush_nothing);
      png_set_IHDR(png_, info_, static_cast<png_uint_32>(array.shape[1]),
                   static_cast<png_uint_32>(array.shape[0]),
                   static_cast<int>(8 * bytes_of(array.type)),
                   array.shape.size() == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY,
                   PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
      if (spacing.size() == 2)
        png_set_pHYs(png_, info_, static_cast<png_uint_32>(1000 / spacing[1] + 0.5),
                     static_cast<png_uint_32>(1000 / spacing[0] + 0.5), PNG_RESOLUTION_METER);
      png_write_info(png_, info_);
      if (array.type == PixelType::kUint16) png_set_swap(png_);
    });
  }
  void write_row(const char* row) {
    run([&] { png_write_row(png_, reinterpret_cast<png_const_bytep>(row)); });
  }
  void end() {
    run([&] { png_write_end(png_, nullptr); });
  }

 private:
  template <class Call>
  void run(const Call& call) {
    if (guarded_png_call(png_, call)) return;
    if (sink_.failure.exception) std::rethrow_exception(sink_.failure.exception);
    throw_error<InvalidInput>("[png] cannot write {}: libpng says: {}; use .tif", path_,
                              sink_.failure.complaint.data());
  }

  PngSink sink_;
  const std::string& path_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

class PngWriter final : public ArrayWriter {
 public:
  PngWriter(const std::string& path, const ArrayInfo& info, const std::string& temporary)
      : ArrayWriter(path, info), layout_(layout_of(path, info)) {
    if (temporary.empty()) target_.emplace(path);
    pixels_.emplace(scratch_path(path), temporary,
                    checked_array_bytes(info.shape, info.type, "png", path));
  }

  const std::string& temporary_name() const override { return pixels_->temporary_name(); }
  void write(const Box& box, const void* dense) override {
    write_flat_box(pixels_->file(), layout_, box, dense);
  }
  void flush() override { pixels_->file().sync(); }
  void finish_part(int, int) override {}

  void commit() override {
    TESSERA_CHECK(target_, "'{}' is a guest's or committed already", path());
    {
      const InputFile pixels(pixels_->name(), "png");
      PngEncoder encoder(target_->file(), path());
      encoder.start(info());
      const int64_t row_bytes = Box::whole(shape()).volume() / shape()[0] * bytes_of(type());
      std::vector<char> row(static_cast<size_t>(row_bytes));
      for (int64_t y = 0; y < shape()[0]; ++y) {
        pixels.read_at(static_cast<uint64_t>(y * row_bytes), row.data(), row.size());
        encoder.write_row(row.data());
      }
      encoder.end();
    }
    target_->commit();
    target_.reset();
    pixels_.reset();
  }

 private:
  static FlatLayout layout_of(const std::string& path, const ArrayInfo& info) {
    const Shape& shape = info.shape;
    const bool is_picture = shape.size() == 2 || (shape.size() == 3 && shape[2] == 3);
    if (!is_picture || shape[0] < 1 || shape[1] < 1 || shape[0] > 0x7fffffff ||
        shape[1] > 0x7fffffff)
      throw_error<InvalidInput>(
          "[png] cannot write {}: an array of {}; a PNG is height x width, or height x width x 3: "
          "use .tif or .npy",
          path, to_string(shape));
    if (info.type != PixelType::kUint8 && info.type != PixelType::kUint16)
      throw_error<InvalidInput>(
          "[png] cannot write {}: numbers of {}; a PNG holds uint8 or uint16: use .tif or .npy",
          path, name_of(info.type));
    FlatLayout layout;
    layout.shape = shape;
    layout.type = info.type;
    return layout;
  }

  const FlatLayout layout_;
  std::optional<TemporaryFile> target_;  // the creator's, until it commits
  std::optional<SharedOutput> pixels_;
};

}  // namespace

std::unique_ptr<ArrayWriter> write_png_array(const std::string& path, const ArrayInfo& info,
                                             const std::string& temporary) {
  return std::make_unique<PngWriter>(path, info, temporary);
}

}  // namespace tessera

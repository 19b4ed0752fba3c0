#include <array>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it before itself
#include <exception>

#include <jpeglib.h>
// After jpeglib.h.
#include <jerror.h>

#include "tessera/base/error.h"
#include "tessera/files/input_file.h"
#include "tessera/images/formats.h"
#include "tessera/images/row_decoder.h"

namespace tessera {
namespace {

/// A progressive file is decoded in as many passes over the whole image as it has scans.
constexpr int kMaxScans = 500;
constexpr long kMaxJpegBytes = 2L << 30;  // of coefficients that libjpeg keeps

/// What libjpeg's callbacks see; each struct of libjpeg's is the first member of one of ours.
struct JpegStream {
  jpeg_source_mgr source = {};
  const InputFile* file = nullptr;
  uint64_t position = 0;
  std::array<JOCTET, 16384> buffer;
  std::exception_ptr failure = nullptr;
};

struct JpegErrors {
  jpeg_error_mgr manager = {};
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> complaint = {};
};

void keep_jpeg_error(j_common_ptr jpeg) {
  auto& errors = *reinterpret_cast<JpegErrors*>(jpeg->err);
  errors.manager.format_message(jpeg, errors.complaint.data());
  std::longjmp(errors.jump, 1);
}

void drop_jpeg_message(j_common_ptr) {}

// Damage that libjpeg paints over is a warning of its own; an exact program stops there. Bytes
// between the parts of a file, which some cameras leave, damage nothing.
void judge_jpeg_message(j_common_ptr jpeg, int level) {
  if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA) keep_jpeg_error(jpeg);
}

void check_jpeg_scans(j_common_ptr jpeg) {
  const auto& decompress = *reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decompress.input_scan_number > kMaxScans) {
    jpeg->err->msg_code = 0;
    keep_jpeg_error(jpeg);
  }
}

void start_jpeg_source(j_decompress_ptr) {}

boolean fill_jpeg_buffer(j_decompress_ptr jpeg) {
  auto& stream = *reinterpret_cast<JpegStream*>(jpeg->src);
  const uint64_t left = stream.file->size() - stream.position;
  size_t bytes = static_cast<size_t>(std::min<uint64_t>(left, stream.buffer.size()));
  try {
    stream.file->read_at(stream.position, stream.buffer.data(), bytes);
  } catch (...) {
    stream.failure = std::current_exception();
    bytes = 0;
  }
  if (bytes == 0) {
    jpeg->err->msg_code = 0;
    keep_jpeg_error(reinterpret_cast<j_common_ptr>(jpeg));
  }
  stream.position += bytes;
  stream.source.next_input_byte = stream.buffer.data();
  stream.source.bytes_in_buffer = bytes;
  return TRUE;
}

void skip_jpeg_bytes(j_decompress_ptr jpeg, long bytes) {
  jpeg_source_mgr& source = *jpeg->src;
  for (auto left = static_cast<size_t>(std::max(0L, bytes)); left > 0;) {
    if (source.bytes_in_buffer == 0) fill_jpeg_buffer(jpeg);
    const size_t step = std::min(left, source.bytes_in_buffer);
    source.next_input_byte += step;
    source.bytes_in_buffer -= step;
    left -= step;
  }
}

void end_jpeg_source(j_decompress_ptr) {}

/// As png_calls.h has it: no jump passes an object with a destructor.
template <class Call>
bool guarded_jpeg(std::jmp_buf& jump, const Call& call) {
  if (setjmp(jump) != 0) return false;
  call();
  return true;
}

class JpegDecoder final : public RowDecoder {
 public:
  explicit JpegDecoder(const InputFile& file) : state_(std::make_unique<State>()) {
    State& state = *state_;
    state.jpeg.err = jpeg_std_error(&state.errors.manager);
    state.errors.manager.error_exit = keep_jpeg_error;
    state.errors.manager.output_message = drop_jpeg_message;
    state.errors.manager.emit_message = judge_jpeg_message;
    state.stream.file = &file;
    state.stream.source.init_source = start_jpeg_source;
    state.stream.source.fill_input_buffer = fill_jpeg_buffer;
    state.stream.source.skip_input_data = skip_jpeg_bytes;
    state.stream.source.resync_to_restart = jpeg_resync_to_restart;
    state.stream.source.term_source = end_jpeg_source;
    state.progress.progress_monitor = check_jpeg_scans;
    run([&] {
      jpeg_create_decompress(&state.jpeg);
      state.jpeg.mem->max_memory_to_use = kMaxJpegBytes;
      state.jpeg.src = &state.stream.source;
      state.jpeg.progress = &state.progress;
      jpeg_read_header(&state.jpeg, TRUE);
    });
  }

  int64_t width() const { return state_->jpeg.image_width; }
  int64_t height() const { return state_->jpeg.image_height; }
  int components() const { return state_->jpeg.num_components; }
  bool is_grey() const { return state_->jpeg.jpeg_color_space == JCS_GRAYSCALE; }
  bool is_colour() const {
    return state_->jpeg.jpeg_color_space == JCS_YCbCr || state_->jpeg.jpeg_color_space == JCS_RGB;
  }

  void start() {
    run([&] {
      state_->jpeg.out_color_space = is_grey() ? JCS_GRAYSCALE : JCS_RGB;
      jpeg_start_decompress(&state_->jpeg);
    });
  }
  void read_row(char* to) override {
    run([&] {
      auto* row = reinterpret_cast<JSAMPROW>(to);
      jpeg_read_scanlines(&state_->jpeg, &row, 1);
    });
  }

 private:
  struct State {
    State() = default;
    State(const State&) = delete;
    ~State() { jpeg_destroy_decompress(&jpeg); }
    jpeg_decompress_struct jpeg = {};
    JpegErrors errors;
    JpegStream stream;
    jpeg_progress_mgr progress = {};
  };

  template <class Call>
  void run(const Call& call) {
    if (guarded_jpeg(state_->errors.jump, call)) return;
    if (state_->stream.failure) std::rethrow_exception(state_->stream.failure);
    throw_error<InvalidInput>("[jpeg] {}: is not a JPEG file, or a damaged one; libjpeg says: {}",
                              state_->stream.file->path(),
                              state_->jpeg.err->msg_code == 0
                                  ? "the file ends too early, or has too many scans"
                                  : state_->errors.complaint.data());
  }

  std::unique_ptr<State> state_;
};

class JpegArrayFile final : public ArrayFile {
 public:
  explicit JpegArrayFile(const std::string& path)
      : ArrayFile(path), file_(path, "jpeg"), rows_([this] { return open(); }) {
    const JpegDecoder decoder(file_);
    if (!decoder.is_grey() && !decoder.is_colour())
      throw_error<InvalidInput>(
          "[jpeg] {}: {} components that are neither grey nor RGB, such as CMYK for printing; save "
          "it as RGB",
          path, decoder.components());
    info_.axes = decoder.is_grey() ? "YX" : "YXC";
    info_.shape = {decoder.height(), decoder.width()};
    if (!decoder.is_grey()) info_.shape.push_back(3);
    info_.block = shape();
    info_.block[0] = 1;
  }

  void read(const Box& box, void* to) const override { rows_.read(info_, box, to); }

 private:
  std::unique_ptr<JpegDecoder> open() const {
    auto decoder = std::make_unique<JpegDecoder>(file_);
    if (Shape{decoder->height(), decoder->width()} != Shape{shape()[0], shape()[1]} ||
        decoder->is_grey() != (shape().size() == 2) ||
        (!decoder->is_grey() && !decoder->is_colour()))
      throw_error<InvalidInput>("[jpeg] {} has changed since it was opened", path());
    decoder->start();
    return decoder;
  }

  const InputFile file_;
  const RowReader rows_;
};

}  // namespace

std::unique_ptr<ArrayFile> open_jpeg(const std::string& path, const ArrayOptions&) {
  return std::make_unique<JpegArrayFile>(path);
}

}  // namespace tessera

#include <openslide.h>
#ifdef TESSERA_HAS_TIFF
#include <tiffio.h>
#endif

#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/input_file.h"
#include "tessera/images/flat_array.h"
#include "tessera/images/formats.h"
#include "tessera/images/image_levels.h"

namespace tessera {
namespace {

/// OpenSlide places a region by coordinates of the finest level, and blends pixels where those of
/// the level asked for lie between them. So regions always begin at the same places: a pixel is
/// then the same in whatever box it is read.
constexpr int64_t kSlideBlock = 256;

/// OpenSlide reads by libtiff, which prints what it complains of unless it is told not to.
void silence_tiff() {
#ifdef TESSERA_HAS_TIFF
  TIFFSetErrorHandler(nullptr);
  TIFFSetWarningHandler(nullptr);
#endif
}

struct SlideCloser {
  void operator()(openslide_t* slide) const { openslide_close(slide); }
};

class SlideArrayFile final : public ArrayFile {
 public:
  SlideArrayFile(const std::string& path, const ArrayOptions& options)
      : ArrayFile(path), slide_(opened(path)) {
    check("cannot be read");
    std::vector<double> downsamples;
    for (int level = 0; level < openslide_get_level_count(slide_.get()); ++level)
      downsamples.push_back(openslide_get_level_downsample(slide_.get(), level));
    const std::optional<double> x = number(OPENSLIDE_PROPERTY_NAME_MPP_X),
                                y = number(OPENSLIDE_PROPERTY_NAME_MPP_Y);
    level_ = choose_level(options, downsamples, x, "slide", path);
    downsample_ = downsamples[static_cast<size_t>(level_)];
    int64_t width = 0, height = 0;
    openslide_get_level_dimensions(slide_.get(), level_, &width, &height);
    if (width < 1 || height < 1 || !(downsample_ > 0))
      throw_error<InvalidInput>("[slide] {}: level {} has {} x {} pixels", path, level_, height,
                                width);
    info_.shape = {height, width, 3};
    info_.axes = "YXC";
    info_.block = {kSlideBlock, kSlideBlock, 3};
    checked_array_bytes(shape(), type(), "slide", path);
    if (x && y) info_.frame.spacing = {*y / 1000 * downsample_, *x / 1000 * downsample_};
  }

  void read(const Box& box, void* to) const override {
    TESSERA_CHECK(box.num_axes() == 3 && Box::whole(shape()).contains(box), "[slide] box {} of {}",
                  to_string(box), to_string(shape()));
    if (box.empty()) return;
    std::vector<uint32_t> block(static_cast<size_t>(kSlideBlock * kSlideBlock));
    for (int64_t y = box[0].begin / kSlideBlock * kSlideBlock; y < box[0].end; y += kSlideBlock)
      for (int64_t x = box[1].begin / kSlideBlock * kSlideBlock; x < box[1].end; x += kSlideBlock)
        read_block(y, x, box, block, static_cast<uint8_t*>(to));
  }

 private:
  // Only a regular file: OpenSlide opens it by its name, and waits for the writer of a pipe.
  static openslide_t* opened(const std::string& path) {
    const InputFile exists(path, "slide");
    silence_tiff();
    openslide_t* const slide = openslide_open(path.c_str());
    if (slide == nullptr)
      throw_error<InvalidInput>("[slide] {}: is not a slide that OpenSlide reads, or a damaged one",
                                path);
    return slide;
  }

  void check(const char* what) const {
    const char* const reason = openslide_get_error(slide_.get());
    if (reason != nullptr)
      throw_error<InvalidInput>("[slide] {}: {}; OpenSlide says: {:.300}", path(), what, reason);
  }

  std::optional<double> number(const char* name) const {
    const char* const text = openslide_get_property_value(slide_.get(), name);
    if (text == nullptr) return std::nullopt;
    const std::optional<double> value = read_number<double>(text);
    return value && std::isfinite(*value) && *value > 0 ? value : std::nullopt;
  }

  void read_block(int64_t y, int64_t x, const Box& box, std::vector<uint32_t>& block,
                  uint8_t* to) const {
    const int64_t width = std::min(kSlideBlock, shape()[1] - x),
                  height = std::min(kSlideBlock, shape()[0] - y);
    openslide_read_region(
        slide_.get(), block.data(), static_cast<int64_t>(static_cast<double>(x) * downsample_),
        static_cast<int64_t>(static_cast<double>(y) * downsample_), level_, width, height);
    check("a region cannot be read");
    const Range rows = intersect(box[0], {y, y + height}),
                columns = intersect(box[1], {x, x + width});
    for (int64_t row = rows.begin; row < rows.end; ++row)
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        const uint32_t colour = block[static_cast<size_t>((row - y) * width + column - x)];
        uint8_t* const pixel =
            to + ((row - box[0].begin) * box[1].size() + column - box[1].begin) * box[2].size();
        for (int64_t c = box[2].begin; c < box[2].end; ++c)
          pixel[c - box[2].begin] = on_white(colour, static_cast<int>(16 - 8 * c));
      }
  }

  /// A premultiplied component, at these bits, over a white ground.
  static uint8_t on_white(uint32_t colour, int shift) {
    const uint32_t alpha = colour >> 24, component = colour >> shift & 0xff;
    return static_cast<uint8_t>(std::min(255u, component + 255 - alpha));
  }

  const std::unique_ptr<openslide_t, SlideCloser> slide_;
  int level_ = 0;
  double downsample_ = 1;
};

}  // namespace

std::unique_ptr<ArrayFile> open_slide(const std::string& path, const ArrayOptions& options) {
  return std::make_unique<SlideArrayFile>(path, options);
}

}  // namespace tessera

#include "tessera/images/tiff_blocks.h"

#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Numbers of less than 8 or 16 bits, the first in the highest bits, as one element each.
template <class Element>
void unpack_bits(const unsigned char* packed, int bits, int64_t count, Element* to) {
  uint32_t held = 0;
  int num_held = 0;
  for (int64_t i = 0; i < count; ++i) {
    while (num_held < bits) {
      held = held << 8 | *packed++;
      num_held += 8;
    }
    num_held -= bits;
    to[i] = static_cast<Element>(held >> num_held & ((1u << bits) - 1));
  }
}

class TiffBlockReader {
 public:
  TiffBlockReader(TiffHandle& handle, const InputFile& file, const TiffImage& image,
                  const TiffTarget& target)
      : handle_(handle), file_(file), image_(image), target_(target) {}

  void read() {
    go_to_image(handle_, image_);
    const Range planes = image_.planar ? target_.samples : Range{0, 1};
    for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
      const int64_t top = target_.rows.begin / image_.block_height * image_.block_height;
      for (int64_t y = top; y < target_.rows.end; y += image_.block_height) {
        const int64_t left = target_.columns.begin / image_.block_width * image_.block_width;
        for (int64_t x = left; x < target_.columns.end; x += image_.block_width)
          read_block(y, x, plane);
      }
    }
  }

 private:
  int64_t element() const { return bytes_of(image_.type); }
  int64_t pixel() const { return image_.samples_in_block() * element(); }
  std::string block_name(int64_t y, int64_t x) const {
    return fmt::format("the {} at row {}, column {}", image_.tiled ? "tile" : "strip", y, x);
  }

  void read_block(int64_t y, int64_t x, int64_t plane) {
    const Range rows =
        intersect(target_.rows, {y, std::min(y + image_.block_height, image_.height)});
    const Range columns = intersect(target_.columns, {x, x + image_.block_width});
    if (image_.access != TiffAccess::kColours && is_missing(index_of(y, x, plane)))
      return put_left_out(rows, columns, plane);
    if (image_.access == TiffAccess::kFlat) return read_flat(y, rows, plane);
    if (image_.access == TiffAccess::kRows) return read_rows(y, rows, plane);
    if (image_.access == TiffAccess::kColours)
      read_colours(y, x);
    else
      decode(y, x, plane);
    for (int64_t row = rows.begin; row < rows.end; ++row)
      put_row(elements_of_row(row - y) + (columns.begin - x) * pixel(), row, columns, plane);
  }

  uint32_t index_of(int64_t y, int64_t x, int64_t plane) const {
    const auto sample = static_cast<uint16_t>(plane);
    return image_.tiled ? TIFFComputeTile(handle_.get(), static_cast<uint32_t>(x),
                                          static_cast<uint32_t>(y), 0, sample)
                        : TIFFComputeStrip(handle_.get(), static_cast<uint32_t>(y), sample);
  }

  // Writers leave blocks out that hold nothing.
  bool is_missing(uint32_t index) const {
    return TIFFGetStrileOffset(handle_.get(), index) == 0 &&
           TIFFGetStrileByteCount(handle_.get(), index) == 0;
  }

  void put_left_out(const Range& rows, const Range& columns, int64_t plane) {
    elements_.resize(static_cast<size_t>(columns.size() * pixel()));
    for (size_t at = 0; at < elements_.size(); at += static_cast<size_t>(element()))
      std::memcpy(elements_.data() + at, target_.left_out.data(), static_cast<size_t>(element()));
    for (int64_t row = rows.begin; row < rows.end; ++row)
      put_row(elements_.data(), row, columns, plane);
  }

  void decode(int64_t y, int64_t x, int64_t plane) {
    const uint32_t index = index_of(y, x, plane);
    const int64_t num_rows =
        image_.tiled ? image_.block_height : std::min(image_.block_height, image_.height - y);
    const int64_t bytes = num_rows * image_.row_bytes;
    handle_.takes_warning();
    tmsize_t got = decode_block(index, bytes);
    // Where a row is damaged, the decoder of fax takes what the block before has left in it.
    if (handle_.takes_warning()) {
      handle_.forget_directory();
      go_to_image(handle_, image_);
      got = decode_block(index, bytes);
    }
    handle_.scan = {};
    if (got != bytes) handle_.refuse(block_name(y, x) + " cannot be read");
  }

  tmsize_t decode_block(uint32_t index, int64_t bytes) {
    decoded_.assign(static_cast<size_t>(bytes), 0);
    return image_.tiled ? TIFFReadEncodedTile(handle_.get(), index, decoded_.data(), bytes)
                        : TIFFReadEncodedStrip(handle_.get(), index, decoded_.data(), bytes);
  }

  void read_colours(int64_t y, int64_t x) {
    const int64_t width = image_.block_width;
    const int64_t num_rows =
        image_.tiled ? image_.block_height : std::min(image_.block_height, image_.height - y);
    colours_.assign(static_cast<size_t>(width * num_rows), 0);
    const int done =
        image_.tiled
            ? TIFFReadRGBATileExt(handle_.get(), static_cast<uint32_t>(x), static_cast<uint32_t>(y),
                                  colours_.data(), 1)
            : TIFFReadRGBAStripExt(handle_.get(), static_cast<uint32_t>(y), colours_.data(), 1);
    if (done != 1) handle_.refuse(block_name(y, x) + " cannot be read");
    decoded_.resize(static_cast<size_t>(width * num_rows * 3));
    char* to = decoded_.data();
    for (int64_t row = num_rows - 1; row >= 0; --row)  // the lowest row comes first
      for (int64_t column = 0; column < width; ++column) {
        const uint32_t colour = colours_[static_cast<size_t>(row * width + column)];
        *to++ = static_cast<char>(TIFFGetR(colour));
        *to++ = static_cast<char>(TIFFGetG(colour));
        *to++ = static_cast<char>(TIFFGetB(colour));
      }
  }

  /// A decoded row as elements of the type.
  const char* elements_of_row(int64_t row) {
    if (image_.access == TiffAccess::kColours)
      return decoded_.data() + row * image_.block_width * 3;
    return unpacked(decoded_.data() + row * image_.row_bytes);
  }

  const char* unpacked(const char* row) {
    if (image_.bits == 8 * element()) return row;
    const int64_t count = image_.block_width * image_.samples_in_block();
    elements_.resize(static_cast<size_t>(count * element()));
    const auto* packed = reinterpret_cast<const unsigned char*>(row);
    if (element() == 1)
      unpack_bits(packed, image_.bits, count, reinterpret_cast<uint8_t*>(elements_.data()));
    else
      unpack_bits(packed, image_.bits, count, reinterpret_cast<uint16_t*>(elements_.data()));
    return elements_.data();
  }

  void read_rows(int64_t y, const Range& rows, int64_t plane) {
    const TiffScan& scan = handle_.scan;
    int64_t next = y;
    if (scan.directory == image_.directory && scan.plane == plane && scan.next_row > y &&
        scan.next_row <= rows.begin)
      next = scan.next_row;
    decoded_.resize(static_cast<size_t>(image_.row_bytes));
    handle_.scan = {};
    for (; next < rows.end; ++next) {
      if (TIFFReadScanline(handle_.get(), decoded_.data(), static_cast<uint32_t>(next),
                           static_cast<uint16_t>(plane)) != 1)
        handle_.refuse(fmt::format("row {} cannot be read", next));
      if (rows.contains(next))
        put_row(unpacked(decoded_.data()) + target_.columns.begin * pixel(), next, target_.columns,
                plane);
    }
    handle_.scan = {image_.directory, plane, next};
  }

  void read_flat(int64_t y, const Range& rows, int64_t plane) {
    const uint32_t index = index_of(y, 0, plane);
    const uint64_t strip = TIFFGetStrileOffset(handle_.get(), index);
    const int64_t bytes = target_.columns.size() * pixel();
    elements_.resize(static_cast<size_t>(bytes));
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const auto offset =
          static_cast<uint64_t>((row - y) * image_.row_bytes + target_.columns.begin * pixel());
      uint64_t end = 0;
      if (__builtin_add_overflow(strip, offset + static_cast<uint64_t>(bytes), &end) ||
          end > file_.size())
        throw_error<InvalidInput>(
            "[tiff] {}: row {} ends at byte {}, the file at {}; it is truncated or corrupt",
            file_.path(), row, end, file_.size());
      file_.read_at(strip + offset, elements_.data(), static_cast<size_t>(bytes));
      if (image_.swap_bytes && element() > 1) swap_elements();
      put_row(elements_.data(), row, target_.columns, plane);
    }
  }

  void swap_elements() {
    for (size_t at = 0; at < elements_.size(); at += static_cast<size_t>(element()))
      std::reverse(elements_.data() + at, elements_.data() + at + element());
  }

  /// Copies the columns of one row, whose pixels lie at `from` one after the other.
  void put_row(const char* from, int64_t row, const Range& columns, int64_t plane) {
    const int64_t kept = image_.planar ? 1 : target_.samples.size();
    int64_t position = (row - target_.rows.begin) * target_.columns.size() +
                       (columns.begin - target_.columns.begin);
    if (image_.planar)
      position += (plane - target_.samples.begin) * target_.rows.size() * target_.columns.size();
    char* to = target_.data + position * kept * element();
    if (kept == image_.samples_in_block()) {
      std::memcpy(to, from, static_cast<size_t>(columns.size() * pixel()));
      return;
    }
    from += target_.samples.begin * element();
    for (int64_t column = 0; column < columns.size(); ++column, from += pixel()) {
      std::memcpy(to, from, static_cast<size_t>(kept * element()));
      to += kept * element();
    }
  }

  TiffHandle& handle_;
  const InputFile& file_;
  const TiffImage& image_;
  const TiffTarget& target_;
  std::vector<char> decoded_;
  std::vector<char> elements_;
  std::vector<uint32_t> colours_;
};

}  // namespace

void read_tiff_image(TiffHandle& handle, const InputFile& file, const TiffImage& image,
                     const TiffTarget& target) {
  TiffBlockReader(handle, file, image, target).read();
}

}  // namespace tessera

#include <zlib.h>

#include <optional>
#include <string>

#include "tessera/base/error.h"
#include "tessera/files/input_file.h"
#include "tessera/images/box_runs.h"
#include "tessera/images/formats.h"
#include "tessera/images/shared_output.h"
#include "tessera/images/tiff_encoder.h"
#include "tessera/images/tiff_tiles.h"

namespace tessera {
namespace {

// Boxes of ranks do not end where tiles end, and a tile can be compressed only when all of it is
// there. So boxes go to a scratch file in which each tile has a slot (tiff_tiles.h); then each rank
// compresses its share of the tiles in their slots, and the creator copies them to the file.
class TiffWriter final : public ArrayWriter {
 public:
  TiffWriter(const std::string& path, const ArrayInfo& info, const std::string& temporary)
      : ArrayWriter(path, info), tiles_(tiles_of(info, path)) {
    if (temporary.empty()) target_.emplace(path);
    scratch_.emplace(scratch_path(path), temporary, tiles_.scratch_bytes());
  }

  const std::string& temporary_name() const override { return scratch_->temporary_name(); }

  void write(const Box& box, const void* dense) override {
    TESSERA_CHECK(box.num_axes() == std::ssize(shape()) && Box::whole(shape()).contains(box),
                  "[tiff] box {} of {}", to_string(box), to_string(shape()));
    if (box.empty()) return;
    int axis = tiles_.num_page_axes;
    const Range planes = has_plane_axis() ? box[axis++] : Range{0, 1};
    const Range rows = box[axis], columns = box[axis + 1];
    const Range samples = tiles_.channels_last ? box[axis + 2] : Range{0, 1};
    const char* from = static_cast<const char*>(dense);
    for_each_page(box, [&](int64_t page) {
      for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
        write_plane(page * tiles_.num_planes + plane, rows, columns, samples, from);
        from += rows.size() * columns.size() * samples.size() * tiles_.element;
      }
    });
  }

  void flush() override { scratch_->file().sync(); }

  void finish_part(int part, int parts) override {
    const InputFile slots(scratch_->name(), "tiff");
    const int64_t count = tiles_.num_tiles();
    for (int64_t tile = count * part / parts; tile < count * (part + 1) / parts; ++tile)
      compress_tile(slots, tile);
    flush();
  }

  void commit() override {
    TESSERA_CHECK(target_, "'{}' is a guest's or committed already", path());
    {
      const InputFile slots(scratch_->name(), "tiff");
      encode_tiff(*target_, path(), info(), tiles_, [&](int64_t tile) -> std::string& {
        uint64_t bytes = compressed_bytes(slots, tile);
        if (bytes == 0) bytes = compress_tile(slots, tile);
        tile_.resize(bytes);
        slots.read_at(static_cast<uint64_t>(tiles_.slot_offset(tile)), tile_.data(), bytes);
        return tile_;
      });
    }
    target_->commit();
    target_.reset();
    scratch_.reset();
  }

 private:
  bool has_plane_axis() const {
    return std::ssize(shape()) == tiles_.num_page_axes + 3 && !tiles_.channels_last;
  }

  template <class Visit>
  void for_each_page(const Box& box, Visit visit) const {
    const Shape pages(shape().begin(), shape().begin() + tiles_.num_page_axes);
    Box wanted;
    for (int axis = 0; axis < tiles_.num_page_axes; ++axis) wanted.push_back(box[axis]);
    for_each_run(pages, wanted, [&](int64_t index, int64_t, int64_t count) {
      for (int64_t i = 0; i < count; ++i) visit(index + i);
    });
  }

  void write_plane(int64_t plane, const Range& rows, const Range& columns, const Range& samples,
                   const char* from) {
    const int64_t height = tiles_.tile_height, width = tiles_.tile_width;
    for (int64_t ty = rows.begin / height; ty * height < rows.end; ++ty)
      for (int64_t tx = columns.begin / width; tx * width < columns.end; ++tx) {
        const Range y = intersect(rows, {ty * height, (ty + 1) * height});
        const Range x = intersect(columns, {tx * width, (tx + 1) * width});
        const int64_t slot =
            tiles_.slot_offset((plane * tiles_.rows() + ty) * tiles_.columns() + tx);
        for (int64_t row = y.begin; row < y.end; ++row) {
          const int64_t source = (row - rows.begin) * columns.size() + x.begin - columns.begin;
          const int64_t position = (row - ty * height) * width + x.begin - tx * width;
          write_pixels(slot, position, x.size(), samples,
                       from + source * samples.size() * tiles_.element);
        }
      }
  }

  /// Pixels of one row of a tile, all of their samples or some.
  void write_pixels(int64_t slot, int64_t position, int64_t count, const Range& samples,
                    const char* from) {
    const int64_t kept = samples.size() * tiles_.element;
    if (samples.size() == tiles_.samples) {
      scratch_->file().write_at(from, static_cast<size_t>(count * kept), slot + position * kept);
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      scratch_->file().write_at(
          from + i * kept, static_cast<size_t>(kept),
          slot + ((position + i) * tiles_.samples + samples.begin) * tiles_.element);
  }

  uint64_t compressed_bytes(const InputFile& slots, int64_t tile) const {
    uint64_t bytes = 0;
    slots.read_at(static_cast<uint64_t>(tile * 8), &bytes, sizeof(bytes));
    return bytes;
  }

  uint64_t compress_tile(const InputFile& slots, int64_t tile) {
    const int64_t slot = tiles_.slot_offset(tile);
    tile_.resize(static_cast<size_t>(tiles_.tile_bytes()));
    slots.read_at(static_cast<uint64_t>(slot), tile_.data(), tile_.size());
    packed_.resize(static_cast<size_t>(tiles_.slot_bytes()));
    uLongf bytes = packed_.size();
    const int result = compress2(reinterpret_cast<Bytef*>(packed_.data()), &bytes,
                                 reinterpret_cast<const Bytef*>(tile_.data()), tile_.size(),
                                 Z_DEFAULT_COMPRESSION);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    TESSERA_CHECK(result == Z_OK, "zlib answers {} for {} bytes", result, tile_.size());
    const uint64_t length = bytes;
    scratch_->file().write_at(packed_.data(), length, slot);
    scratch_->file().write_at(&length, sizeof(length), tile * 8);
    return length;
  }

  const TiffTiles tiles_;
  std::optional<TemporaryFile> target_;  // the creator's, until it commits
  std::optional<SharedOutput> scratch_;
  std::string tile_, packed_;
};

}  // namespace

std::unique_ptr<ArrayWriter> write_tiff(const std::string& path, const ArrayInfo& info,
                                        const std::string& temporary) {
  return std::make_unique<TiffWriter>(path, info, temporary);
}

}  // namespace tessera

#include <optional>
#include <string>

#include "tessera/base/error.h"
#include "tessera/images/box_runs.h"
#include "tessera/images/formats.h"
#include "tessera/images/tiff_encoder.h"
#include "tessera/images/tiff_slots.h"
#include "tessera/images/tiff_tiles.h"

namespace tessera {
namespace {

ArrayInfo in_tiles(ArrayInfo info, const std::string& path) {
  info.block = tiles_of(info, path).block(info.shape);
  return info;
}

// Tiles are compressed in a scratch file (tiff_slots.h); what is left of that when all have written
// is shared by the ranks, and the creator copies the tiles to the file.
class TiffWriter final : public ArrayWriter {
 public:
  TiffWriter(const std::string& path, const ArrayInfo& info, const std::string& temporary)
      : ArrayWriter(path, in_tiles(info, path)), tiles_(tiles_of(info, path)) {
    if (temporary.empty()) target_.emplace(path);
    slots_.emplace(path, temporary, tiles_);
  }

  const std::string& temporary_name() const override { return slots_->temporary_name(); }

  void write(const Box& box, const void* dense) override {
    TESSERA_CHECK(box.num_axes() == std::ssize(shape()) && Box::whole(shape()).contains(box),
                  "[tiff] box {} of {}", to_string(box), to_string(shape()));
    if (box.empty()) return;
    int axis = tiles_.num_page_axes;
    const Range planes = tiles_.has_plane_axis(shape()) ? box[axis++] : Range{0, 1};
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

  void flush() override { slots_->flush(); }

  void finish_part(int part, int parts) override {
    const int64_t count = tiles_.num_tiles();
    slots_->finish(count * part / parts, count * (part + 1) / parts);
    flush();
  }

  void commit() override {
    TESSERA_CHECK(target_, "'{}' is a guest's or committed already", path());
    encode_tiff(*target_, path(), info(), tiles_,
                [&](int64_t tile) -> std::string& { return slots_->take(tile); });
    target_->commit();
    target_.reset();
    slots_.reset();
  }

 private:
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
    const int64_t pixel = samples.size() * tiles_.element;
    for (int64_t ty = rows.begin / height; ty * height < rows.end; ++ty)
      for (int64_t tx = columns.begin / width; tx * width < columns.end; ++tx) {
        const Range y = intersect(rows, {ty * height, (ty + 1) * height});
        const Range x = intersect(columns, {tx * width, (tx + 1) * width});
        const int64_t source = (y.begin - rows.begin) * columns.size() + x.begin - columns.begin;
        slots_->write({.tile = (plane * tiles_.rows() + ty) * tiles_.columns() + tx,
                       .rows = y.shifted(-ty * height),
                       .columns = x.shifted(-tx * width),
                       .samples = samples,
                       .data = from + source * pixel,
                       .row_bytes = columns.size() * pixel});
      }
  }

  const TiffTiles tiles_;
  std::optional<TemporaryFile> target_;  // the creator's, until it commits
  std::optional<TiffSlots> slots_;
};

}  // namespace

std::unique_ptr<ArrayWriter> write_tiff(const std::string& path, const ArrayInfo& info,
                                        const std::string& temporary) {
  return std::make_unique<TiffWriter>(path, info, temporary);
}

}  // namespace tessera

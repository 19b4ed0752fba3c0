#pragma once
// The scratch file of a TIFF that is being written, in which each tile has a slot.
//
//   | bytes of each compressed tile, 8 each; 0 before | slot of tile 0 | slot of tile 1 | ...
//
// Boxes of ranks do not end where tiles end, and a tile can be compressed only when all of it is
// there. A tile that one box holds whole goes into its slot compressed. Of others the pixels go
// there as they come; the writer that has brought all of them compresses the tile in its place, and
// a tile of several writers waits for finish().
//
// A slot is as large as a tile can be after compression, but no space is reserved: what nobody has
// written is a hole, and compressing gives back what it saves. So the file takes the space of the
// compressed tiles, and of those that are not whole yet.
//
// write() may be called by several threads; the rest may not.

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "tessera/files/input_file.h"
#include "tessera/images/shared_output.h"
#include "tessera/images/tiff_tiles.h"

namespace tessera {

/// Pixels of one tile, counted from its corner, and where they lie in memory.
struct TilePart {
  int64_t tile = 0;
  Range rows, columns, samples;
  const char* data = nullptr;  // of the first one; dense along columns and samples
  int64_t row_bytes = 0;       // from one row to the next
};

class TiffSlots {
 public:
  /// Joins the file of that temporary name, or creates it where that is empty. `tiles` outlives it.
  TiffSlots(const std::string& path, const std::string& temporary, const TiffTiles& tiles);

  /// Only the creator.
  const std::string& temporary_name() const { return scratch_.temporary_name(); }
  void write(const TilePart& part);
  void flush() { scratch_.file().sync(); }
  /// Compresses those of the tiles [begin, end) that nobody has compressed.
  void finish(int64_t begin, int64_t end);
  /// The compressed bytes of a tile, which live until the next call; its slot is empty then.
  std::string& take(int64_t tile);

 private:
  /// Opened anew for what others have written: a network file system shows it then.
  InputFile reopened() const { return InputFile(scratch_.name(), "tiff"); }
  static uint64_t compressed_bytes(const InputFile& file, int64_t tile);
  void write_row(int64_t tile, int64_t first_pixel, const TilePart& part, const char* from);
  void compress_in_place(const InputFile& file, int64_t tile);
  void store_compressed(int64_t tile, const std::string& pixels);

  const TiffTiles& tiles_;
  SharedOutput scratch_;
  std::mutex mutex_;
  std::unordered_map<int64_t, int64_t> brought_;  // numbers of tiles that are not whole yet
  std::optional<InputFile> taken_from_;
  std::string taken_;
};

}  // namespace tessera

#pragma once
// An image file as an array that is read by boxes: the one interface of all formats. A rank reads
// its own box and nothing else, so that no rank ever holds a whole image.
//
// A file gives its numbers in its own type and in its own order of axes, and says what the axes
// are; converting them and bringing channels first is the business of its readers
// (data/file_images.h).
//
// Reading is const and thread-safe. The file may be anything: what is not understood or breaks off
// is InvalidInput with [format] and the path.
//
// Example:
//   const auto file = open_array("slide.tif");             // open_array.h
//   std::vector<uint8_t> tile(256 * 256 * 3);
//   file->read(Box{{0, 256}, {512, 768}, {0, 3}}, tile.data());   // axes "YXC"

#include <string>

#include "tessera/geometry/box.h"
#include "tessera/images/image_frame.h"
#include "tessera/images/pixel_type.h"

namespace tessera {

struct ArrayInfo {
  Shape shape = {};
  /// A letter for each axis: P page (or time), C channel, Z Y X space. Empty where the format does
  /// not say.
  std::string axes = {};
  PixelType type = PixelType::kUint8;
  ImageFrame frame = {};
  /// Sizes of the blocks, from index 0 on, that are coded whole: who reads or writes a large box in
  /// parts cuts it between them. Empty: a part costs what it holds.
  Shape block = {};
};

class ArrayFile {
 public:
  explicit ArrayFile(std::string path) : path_(std::move(path)) {}
  virtual ~ArrayFile() = default;
  ArrayFile(const ArrayFile&) = delete;
  ArrayFile& operator=(const ArrayFile&) = delete;

  const std::string& path() const { return path_; }
  const ArrayInfo& info() const { return info_; }
  const Shape& shape() const { return info_.shape; }
  PixelType type() const { return info_.type; }

  /// Writes the box, which lies inside shape(), into `to`: dense, the last axis fastest, numbers of
  /// type() in the machine's byte order.
  virtual void read(const Box& box, void* to) const = 0;

 protected:
  ArrayInfo info_;  // set once, when the file is opened

 private:
  std::string path_;
};

}  // namespace tessera

#pragma once
// A picture to draw on: pixels, frames, other pictures and short captions. What falls outside is
// left out.
//
// Example:
//   Canvas canvas(200, 100, {255, 255, 255});
//   canvas.draw_frame({10, 90}, {10, 50}, {255, 0, 0});
//   canvas.draw_text(10, 60, "step 10", {0, 0, 0}, /*zoom=*/2);

#include <string>

#include "tessera/data/png.h"
#include "tessera/geometry/range.h"

namespace tessera {

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

class Canvas {
 public:
  Canvas(int64_t width, int64_t height, const Colour& background);

  int64_t width() const { return image_.width; }
  int64_t height() const { return image_.height; }
  Colour at(int64_t x, int64_t y) const;
  void set(int64_t x, int64_t y, const Colour& colour);

  void fill(const Range& xs, const Range& ys, const Colour& colour);
  /// The outline, one pixel wide, inside the ranges.
  void draw_frame(const Range& xs, const Range& ys, const Colour& colour);
  /// Copies another picture, each of its pixels `zoom` wide and high.
  void draw(const Canvas& other, int64_t x, int64_t y, int64_t zoom);
  /// Writes letters of 3 x 5 pixels times `zoom`; capitals only. A character that it does not know
  /// is a box.
  void draw_text(int64_t x, int64_t y, const std::string& text, const Colour& colour, int64_t zoom);
  static int64_t text_width(const std::string& text, int64_t zoom);
  static int64_t text_height(int64_t zoom) { return 5 * zoom; }

  /// As RGB, for write_png.
  const PngImage& image() const { return image_; }

 private:
  PngImage image_;
};

}  // namespace tessera

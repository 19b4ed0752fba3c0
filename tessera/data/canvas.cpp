#include "tessera/data/canvas.h"

#include <cctype>
#include <map>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Five rows of three pixels, one octal digit a row, the leftmost pixel in its highest bit.
uint16_t glyph(char character) {
  static const std::map<char, uint16_t> glyphs{
      {'A', 025755}, {'B', 065656}, {'C', 034443}, {'D', 065556}, {'E', 074647}, {'F', 074644},
      {'G', 034553}, {'H', 055755}, {'I', 072227}, {'J', 011152}, {'K', 055655}, {'L', 044447},
      {'M', 057755}, {'N', 065555}, {'O', 025552}, {'P', 065644}, {'Q', 025563}, {'R', 065655},
      {'S', 034216}, {'T', 072222}, {'U', 055557}, {'V', 055552}, {'W', 055775}, {'X', 055255},
      {'Y', 055222}, {'Z', 071247}, {'0', 075557}, {'1', 026227}, {'2', 061247}, {'3', 061216},
      {'4', 055711}, {'5', 074616}, {'6', 034652}, {'7', 071222}, {'8', 025252}, {'9', 025316},
      {'.', 000002}, {',', 000024}, {':', 002020}, {'-', 000700}, {'=', 007070}, {'%', 051245},
      {'/', 011244}, {'(', 012221}, {')', 042224}, {'+', 002720}, {'_', 000007}, {' ', 000000}};
  const auto found =
      glyphs.find(static_cast<char>(std::toupper(static_cast<unsigned char>(character))));
  return found == glyphs.end() ? 075557 : found->second;
}

}  // namespace

Canvas::Canvas(int64_t width, int64_t height, const Colour& background) {
  TESSERA_CHECK(width >= 1 && height >= 1, "a canvas of {} x {}", width, height);
  image_ = {width, height, 3, std::vector<uint8_t>(static_cast<size_t>(width * height * 3))};
  fill({0, width}, {0, height}, background);
}

Colour Canvas::at(int64_t x, int64_t y) const {
  TESSERA_CHECK(0 <= x && x < width() && 0 <= y && y < height(), "pixel {}, {} of {} x {}", x, y,
                width(), height());
  const uint8_t* pixel = image_.pixels.data() + (y * width() + x) * 3;
  return {pixel[0], pixel[1], pixel[2]};
}

void Canvas::set(int64_t x, int64_t y, const Colour& colour) {
  if (x < 0 || x >= width() || y < 0 || y >= height()) return;
  uint8_t* pixel = image_.pixels.data() + (y * width() + x) * 3;
  pixel[0] = colour.red;
  pixel[1] = colour.green;
  pixel[2] = colour.blue;
}

void Canvas::fill(const Range& xs, const Range& ys, const Colour& colour) {
  const Range inside_x = intersect(xs, {0, width()}), inside_y = intersect(ys, {0, height()});
  for (int64_t y = inside_y.begin; y < inside_y.end; ++y)
    for (int64_t x = inside_x.begin; x < inside_x.end; ++x) set(x, y, colour);
}

void Canvas::draw_frame(const Range& xs, const Range& ys, const Colour& colour) {
  if (xs.empty() || ys.empty()) return;
  fill(xs, {ys.begin, ys.begin + 1}, colour);
  fill(xs, {ys.end - 1, ys.end}, colour);
  fill({xs.begin, xs.begin + 1}, ys, colour);
  fill({xs.end - 1, xs.end}, ys, colour);
}

void Canvas::draw(const Canvas& other, int64_t x, int64_t y, int64_t zoom) {
  for (int64_t row = 0; row < other.height(); ++row)
    for (int64_t column = 0; column < other.width(); ++column)
      fill(Range{0, zoom}.shifted(x + column * zoom), Range{0, zoom}.shifted(y + row * zoom),
           other.at(column, row));
}

void Canvas::draw_text(int64_t x, int64_t y, const std::string& text, const Colour& colour,
                       int64_t zoom) {
  for (char character : text) {
    const uint16_t bits = glyph(character);
    for (int row = 0; row < 5; ++row)
      for (int column = 0; column < 3; ++column)
        if (bits >> (14 - 3 * row - column) & 1)
          fill(Range{0, zoom}.shifted(x + column * zoom), Range{0, zoom}.shifted(y + row * zoom),
               colour);
    x += 4 * zoom;
  }
}

int64_t Canvas::text_width(const std::string& text, int64_t zoom) {
  return text.empty() ? 0 : (4 * static_cast<int64_t>(text.size()) - 1) * zoom;
}

}  // namespace tessera

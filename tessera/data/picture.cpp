#include "tessera/data/picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr Colour kWhite{255, 255, 255}, kText{40, 40, 40}, kFrame{255, 255, 255}, kShadow{0, 0, 0};
constexpr Colour kNoNumber{255, 0, 255};

struct Stretch {
  double low = 0;
  double high = 1;
  uint8_t operator()(double value) const {
    return static_cast<uint8_t>(
        std::lround(255 * std::clamp((value - low) / (high - low), 0.0, 1.0)));
  }
};

/// From the first to the last percentile of the finite values.
Stretch choose_stretch(const at::Tensor& image) {
  std::vector<double> values;
  const double* data = image.data_ptr<double>();
  for (int64_t i = 0; i < image.numel(); ++i)
    if (std::isfinite(data[i])) values.push_back(data[i]);
  if (values.empty()) return {};
  const auto percentile = [&](size_t percent) {
    const auto at =
        values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) * percent / 100);
    std::nth_element(values.begin(), at, values.end());
    return *at;
  };
  const Stretch stretch{percentile(1), percentile(99)};
  // An image of one value: any stretch that does not divide by zero.
  return stretch.high > stretch.low ? stretch : Stretch{stretch.low, stretch.low + 1};
}

/// Full colour at an angle of the wheel in [0, 1), darkened by `value`.
Colour wheel(double angle, double value) {
  const auto channel = [&](double shift) {
    const double k = std::fmod(shift + angle * 6, 6.0);
    const double level = 1 - 0.85 * std::max(0.0, std::min({k, 4 - k, 1.0}));
    return static_cast<uint8_t>(std::lround(255 * value * level));
  };
  return {channel(5), channel(3), channel(1)};
}

}  // namespace

Colour class_colour(int64_t label) {
  static constexpr std::array<Colour, 8> kFirst{{{0, 0, 0},
                                                 {230, 159, 0},
                                                 {86, 180, 233},
                                                 {0, 158, 115},
                                                 {240, 228, 66},
                                                 {213, 94, 0},
                                                 {204, 121, 167},
                                                 {0, 114, 178}}};
  if (label < 0) return {128, 128, 128};
  if (label < static_cast<int64_t>(kFirst.size())) return kFirst[label];
  // Steps of the golden ratio never come near an earlier angle again.
  const double angle = std::fmod(static_cast<double>(label) * 0.6180339887498949, 1.0);
  return wheel(angle, label % 2 == 0 ? 1.0 : 0.7);
}

Canvas picture_of(const at::Tensor& image) {
  TESSERA_CHECK((image.dim() == 2 || image.dim() == 3) && image.numel() > 0,
                "a picture of a tensor of shape {}", to_string(image.sizes().vec()));
  at::Tensor planes = image.dim() == 2 ? image.unsqueeze(0) : image;
  planes = planes.slice(0, 0, planes.size(0) == 3 ? 3 : 1).to(at::kCPU, at::kDouble).contiguous();
  const Stretch stretch = choose_stretch(planes);
  const double* data = planes.data_ptr<double>();
  const int64_t height = planes.size(1), width = planes.size(2), plane = height * width;
  Canvas canvas(width, height, kWhite);
  for (int64_t i = 0; i < plane; ++i) {
    std::array<double, 3> values;
    for (int64_t c = 0; c < 3; ++c) values[c] = data[(planes.size(0) == 3 ? c : 0) * plane + i];
    const bool number = !std::isnan(values[0]) && !std::isnan(values[1]) && !std::isnan(values[2]);
    const Colour colour =
        number ? Colour{stretch(values[0]), stretch(values[1]), stretch(values[2])} : kNoNumber;
    canvas.set(i % width, i / width, colour);
  }
  return canvas;
}

Canvas picture_of_classes(const at::Tensor& labels) {
  TESSERA_CHECK(labels.dim() == 2 && labels.numel() > 0, "classes of shape {}",
                to_string(labels.sizes().vec()));
  const at::Tensor host = labels.to(at::kCPU, at::kLong).contiguous();
  const int64_t* data = host.data_ptr<int64_t>();
  const int64_t height = host.size(0), width = host.size(1);
  Canvas canvas(width, height, kWhite);
  for (int64_t i = 0; i < height * width; ++i)
    canvas.set(i % width, i / width, class_colour(data[i]));
  return canvas;
}

Canvas overlay_of(const at::Tensor& image, const at::Tensor& labels) {
  Canvas canvas = picture_of(image);
  const at::Tensor host = labels.to(at::kCPU, at::kLong).contiguous();
  TESSERA_CHECK(
      host.dim() == 2 && host.size(0) == canvas.height() && host.size(1) == canvas.width(),
      "classes of shape {}", to_string(labels.sizes().vec()));
  const int64_t* data = host.data_ptr<int64_t>();
  for (int64_t i = 0; i < host.numel(); ++i) {
    if (data[i] == 0) continue;
    const int64_t x = i % canvas.width(), y = i / canvas.width();
    const Colour below = canvas.at(x, y), above = class_colour(data[i]);
    const auto half = [](uint8_t a, uint8_t b) { return static_cast<uint8_t>((a + b) / 2); };
    canvas.set(
        x, y,
        {half(below.red, above.red), half(below.green, above.green), half(below.blue, above.blue)});
  }
  return canvas;
}

Canvas side_by_side(const std::vector<Panel>& panels, const PanelOptions& options) {
  TESSERA_CHECK(!panels.empty() && options.zoom >= 1, "{} panels, zoom {}", panels.size(),
                options.zoom);
  constexpr int64_t kGap = 8, kTextZoom = 2;
  int64_t width = kGap, height = 0;
  for (const Panel& panel : panels) {
    width += kGap + std::max(panel.picture.width() * options.zoom,
                             Canvas::text_width(panel.caption, kTextZoom));
    height = std::max(height, panel.picture.height() * options.zoom);
  }
  Canvas canvas(width, kGap + height + kGap + Canvas::text_height(kTextZoom) + kGap, kWhite);
  int64_t x = kGap;
  for (const Panel& panel : panels) {
    canvas.draw(panel.picture, x, kGap, options.zoom);
    for (const Box& box : options.boxes) {
      const Range ys{box[0].begin * options.zoom + kGap, box[0].end * options.zoom + kGap};
      const Range xs{box[1].begin * options.zoom + x, box[1].end * options.zoom + x};
      // White inside black is seen on any ground.
      canvas.draw_frame(xs, ys, kShadow);
      canvas.draw_frame({xs.begin + 1, xs.end - 1}, {ys.begin + 1, ys.end - 1}, kFrame);
    }
    canvas.draw_text(x, kGap + height + kGap, panel.caption, kText, kTextZoom);
    x += kGap + std::max(panel.picture.width() * options.zoom,
                         Canvas::text_width(panel.caption, kTextZoom));
  }
  return canvas;
}

}  // namespace tessera

#include "tessera/images/tiff_frame.h"

#include <tiffio.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

std::string description_of(TiffHandle& handle) {
  const char* text = nullptr;
  if (TIFFGetField(handle.get(), TIFFTAG_IMAGEDESCRIPTION, &text) != 1 || text == nullptr)
    return {};
  return std::string(text).substr(0, 1 << 20);
}

bool is_image_j(const std::string& description) { return description.starts_with("ImageJ="); }
bool is_ome(const std::string& description) {
  return description.find("<OME") != std::string::npos;
}

/// The value of "key=value" on a line of ImageJ's description.
std::string image_j_value(const std::string& description, const std::string& key) {
  for (const std::string& line : split_text(description, '\n'))
    if (line.starts_with(key + "=")) return line.substr(key.size() + 1);
  return {};
}

/// The value of key="value" in the first Pixels element of OME's description.
std::string ome_value(const std::string& description, const std::string& key) {
  const size_t begin = description.find("<Pixels");
  if (begin == std::string::npos) return {};
  const std::string element = description.substr(begin, description.find('>', begin) - begin);
  const size_t at = element.find(" " + key + "=\"");
  if (at == std::string::npos) return {};
  const size_t value = at + key.size() + 3;
  return element.substr(value, element.find('"', value) - value);
}

int64_t count_of(const std::string& text) {
  return std::max<int64_t>(1, read_number<int64_t>(text).value_or(1));
}

std::optional<double> positive_number(const std::string& text) {
  const std::optional<double> number = read_number<double>(text);
  return number && std::isfinite(*number) && *number > 0 ? number : std::nullopt;
}

/// Millimetres of a unit as ImageJ and OME write it; nothing for one that is not a length.
std::optional<double> millimetres_of(const std::string& unit) {
  static const std::map<std::string_view, double> units{
      {"nm", 1e-6}, {"\\u00B5m", 1e-3}, {"\xC2\xB5m", 1e-3}, {"\xB5m", 1e-3},
      {"um", 1e-3}, {"micron", 1e-3},   {"microns", 1e-3},   {"mm", 1},
      {"cm", 10},   {"m", 1e3},         {"inch", 25.4}};
  const auto known = units.find(unit);
  return known == units.end() ? std::nullopt : std::optional(known->second);
}

/// Millimetres of a pixel along z, y and x, where the file says so.
struct PixelSize {
  std::optional<double> z, y, x;
};

PixelSize size_by_resolution(TiffHandle& handle, std::optional<double> unit) {
  float x = 0, y = 0;
  uint16_t code = RESUNIT_INCH;
  tiff* const file = handle.get();
  if (TIFFGetField(file, TIFFTAG_XRESOLUTION, &x) != 1 ||
      TIFFGetField(file, TIFFTAG_YRESOLUTION, &y) != 1)
    return {};
  TIFFGetFieldDefaulted(file, TIFFTAG_RESOLUTIONUNIT, &code);
  if (code == RESUNIT_INCH) unit = 25.4;
  if (code == RESUNIT_CENTIMETER) unit = 10;
  if (!unit || !(x > 0) || !(y > 0) || !std::isfinite(x) || !std::isfinite(y)) return {};
  return {.z = {}, .y = *unit / y, .x = *unit / x};
}

PixelSize size_of_pixel(TiffHandle& handle) {
  const std::string description = description_of(handle);
  if (is_image_j(description)) {
    const auto unit = millimetres_of(image_j_value(description, "unit"));
    PixelSize size = size_by_resolution(handle, unit);
    const auto depth = positive_number(image_j_value(description, "spacing"));
    if (unit && depth) size.z = *depth * *unit;
    return size;
  }
  if (is_ome(description)) {
    const auto along = [&](const std::string& axis) -> std::optional<double> {
      const auto number = positive_number(ome_value(description, "PhysicalSize" + axis));
      const std::string unit = ome_value(description, "PhysicalSize" + axis + "Unit");
      const auto scale = unit.empty() ? 1e-3 : millimetres_of(unit);
      return number && scale ? std::optional(*number * *scale) : std::nullopt;
    };
    return {.z = along("Z"), .y = along("Y"), .x = along("X")};
  }
  return size_by_resolution(handle, std::nullopt);
}

/// The numbers of a tag that libtiff does not know itself; empty where there is none of that type.
template <class Number>
std::vector<Number> numbers_of(tiff* file, uint32_t tag, TIFFDataType type) {
  const TIFFField* const field = TIFFFindField(file, tag, TIFF_ANY);
  if (field == nullptr || TIFFFieldDataType(field) != type || TIFFFieldPassCount(field) == 0)
    return {};
  const Number* data = nullptr;
  uint32_t count = 0;
  if (TIFFFieldReadCount(field) == TIFF_VARIABLE2) {
    if (TIFFGetField(file, tag, &count, &data) != 1) return {};
  } else {
    uint16_t short_count = 0;
    if (TIFFGetField(file, tag, &short_count, &data) != 1) return {};
    count = short_count;
  }
  if (data == nullptr) return {};
  return {data, data + count};
}

std::map<int, int> geo_keys_of(tiff* file) {
  const auto numbers = numbers_of<uint16_t>(file, kTiffGeoKeys, TIFF_SHORT);
  std::map<int, int> keys;
  // A header of four numbers; then key, 0 for a value that is here, 1, and the value.
  for (size_t at = 4; at + 4 <= numbers.size(); at += 4)
    if (numbers[at + 1] == 0) keys[numbers[at]] = numbers[at + 3];
  return keys;
}

std::optional<std::array<double, 6>> geotransform_of(tiff* file, bool of_points) {
  std::array<double, 6> transform{};
  const auto matrix = numbers_of<double>(file, kTiffTransformation, TIFF_DOUBLE);
  const auto scale = numbers_of<double>(file, kTiffPixelScale, TIFF_DOUBLE);
  const auto tie = numbers_of<double>(file, kTiffTiepoint, TIFF_DOUBLE);
  if (matrix.size() >= 16) {
    transform = {matrix[3], matrix[0], matrix[1], matrix[7], matrix[4], matrix[5]};
  } else if (scale.size() >= 2 && tie.size() == 6) {
    transform = {tie[3] - tie[0] * scale[0], scale[0], 0, tie[4] + tie[1] * scale[1], 0, -scale[1]};
  } else {
    return std::nullopt;
  }
  if (of_points) {  // the coordinates are those of centres of pixels
    transform[0] -= (transform[1] + transform[2]) / 2;
    transform[3] -= (transform[4] + transform[5]) / 2;
  }
  return transform;
}

void take_georeference(tiff* file, ImageFrame* frame) {
  const std::map<int, int> keys = geo_keys_of(file);
  const auto value_of = [&](int key) { return keys.contains(key) ? keys.at(key) : 0; };
  frame->geotransform = geotransform_of(file, value_of(kGeoKeyRasterType) == 2);
  for (const int key : {kGeoKeyProjected, kGeoKeyGeographic}) {
    const int code = value_of(key);
    if (code > 0 && code < 32767 && frame->projection.empty())
      frame->projection = fmt::format("EPSG:{}", code);
  }
  const auto text = numbers_of<char>(file, kTiffNoData, TIFF_ASCII);
  if (!text.empty()) {
    std::string word(text.begin(), text.end());
    word.resize(std::min(word.size(), word.find_first_of(std::string(" \0", 2))));
    frame->no_data = read_number<double>(word);
  }
}

}  // namespace

std::vector<std::pair<char, int64_t>> axes_of_pages(TiffHandle& handle, int64_t num_pages) {
  if (num_pages == 1) return {};
  const std::string description = description_of(handle);
  std::vector<std::pair<char, int64_t>> axes;
  if (is_image_j(description)) {
    axes = {{'P', count_of(image_j_value(description, "frames"))},
            {'Z', count_of(image_j_value(description, "slices"))},
            {'C', count_of(image_j_value(description, "channels"))}};
  } else if (is_ome(description)) {
    // Such as XYCZT, fastest first.
    const std::string order = ome_value(description, "DimensionOrder");
    for (size_t at = order.size(); at-- > 2;)
      if (std::string_view("ZCT").find(order[at]) != std::string_view::npos)
        axes.emplace_back(order[at] == 'T' ? 'P' : order[at],
                          count_of(ome_value(description, std::string("Size") + order[at])));
  }
  std::erase_if(axes, [](const auto& axis) { return axis.second == 1; });
  int64_t product = 1;
  bool fits = !axes.empty() && axes.size() <= 3;
  for (const auto& [letter, size] : axes)
    fits = fits && !__builtin_mul_overflow(product, size, &product);
  if (fits && product == num_pages) return axes;
  return {{'P', num_pages}};
}

ImageFrame tiff_frame(TiffHandle& handle, bool has_depth) {
  ImageFrame frame;
  const PixelSize size = size_of_pixel(handle);
  if (size.y && size.x && (!has_depth || size.z)) {
    if (has_depth) frame.spacing.push_back(*size.z);
    frame.spacing.push_back(*size.y);
    frame.spacing.push_back(*size.x);
  }
  take_georeference(handle.get(), &frame);
  return frame;
}

}  // namespace tessera

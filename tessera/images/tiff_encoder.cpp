#include "tessera/images/tiff_encoder.h"

#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/input_file.h"
#include "tessera/images/tiff_frame.h"

namespace tessera {
namespace {

/// What libtiff's callbacks see.
struct TiffSink {
  OutputFile& file;
  const InputFile& written;  // the same file: libtiff reads where it links directories
  uint64_t position = 0;
  uint64_t size = 0;
  std::array<char, 320> complaint = {};
  std::exception_ptr failure = nullptr;
};

TiffSink& tiff_sink(thandle_t handle) { return *static_cast<TiffSink*>(handle); }

tmsize_t read_tiff_sink(thandle_t handle, void* to, tmsize_t bytes) {
  TiffSink& sink = tiff_sink(handle);
  if (bytes <= 0 || sink.position + static_cast<uint64_t>(bytes) > sink.size) return 0;
  try {
    sink.written.read_at(sink.position, to, static_cast<size_t>(bytes));
  } catch (...) {
    sink.failure = std::current_exception();
    return 0;
  }
  sink.position += static_cast<uint64_t>(bytes);
  return bytes;
}

tmsize_t write_tiff_sink(thandle_t handle, void* data, tmsize_t bytes) {
  TiffSink& sink = tiff_sink(handle);
  try {
    sink.file.write_at(data, static_cast<size_t>(bytes), static_cast<int64_t>(sink.position));
  } catch (...) {
    sink.failure = std::current_exception();
    return 0;
  }
  sink.position += static_cast<uint64_t>(bytes);
  sink.size = std::max(sink.size, sink.position);
  return bytes;
}

toff_t seek_tiff_sink(thandle_t handle, toff_t offset, int whence) {
  TiffSink& sink = tiff_sink(handle);
  const uint64_t from = whence == SEEK_CUR ? sink.position : whence == SEEK_END ? sink.size : 0;
  return sink.position = from + offset;
}

int close_tiff_sink(thandle_t) { return 0; }

toff_t tiff_sink_size(thandle_t handle) { return tiff_sink(handle).size; }

int keep_tiff_sink_error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  auto& complaint = static_cast<TiffSink*>(user)->complaint;
  if (complaint[0] == 0) std::vsnprintf(complaint.data(), complaint.size(), format, arguments);
  return 1;
}

int drop_tiff_sink_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

/// The EPSG code of "EPSG:32633", or of WKT, whose last authority is that of the whole; 0: none.
int epsg_code(const std::string& projection) {
  for (const std::string_view mark : {"EPSG:", "AUTHORITY[\"EPSG\",\"", "ID[\"EPSG\","}) {
    const size_t at = projection.rfind(mark);
    if (at == std::string::npos) continue;
    const size_t begin = at + mark.size();
    const size_t end =
        std::min(projection.find_first_not_of("0123456789", begin), projection.size());
    const auto code = read_number<int>(projection.substr(begin, end - begin));
    if (code && *code > 0 && *code < 32767) return *code;
  }
  return 0;
}

/// Codes of systems in degrees are those between 4000 and 5000; WKT says what it is.
bool is_geographic(const std::string& projection, int code) {
  if (projection.starts_with("GEOG")) return true;
  return projection.starts_with("EPSG:") && code >= 4000 && code < 5000;
}

class TiffEncoder {
 public:
  TiffEncoder(TemporaryFile& target, const std::string& path, const ArrayInfo& info,
              const TiffTiles& tiles)
      : path_(path),
        info_(info),
        tiles_(tiles),
        written_(target.name(), "tiff"),
        sink_{.file = target.file(), .written = written_} {
    TIFFOpenOptions* const options = TIFFOpenOptionsAlloc();
    if (options == nullptr) throw std::bad_alloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_tiff_sink_error, &sink_);
    TIFFOpenOptionsSetWarningHandlerExtR(options, drop_tiff_sink_warning, &sink_);
    tiff_ = TIFFClientOpenExt(path.c_str(), "w8m", &sink_, read_tiff_sink, write_tiff_sink,
                              seek_tiff_sink, close_tiff_sink, tiff_sink_size, nullptr, nullptr,
                              options);
    TIFFOpenOptionsFree(options);
    if (tiff_ == nullptr) refuse();
  }
  TiffEncoder(const TiffEncoder&) = delete;
  ~TiffEncoder() { TIFFCleanup(tiff_); }

  void write_page(int64_t page, const std::function<std::string&(int64_t)>& tile_of) {
    set_layout();
    set_spacing(page);
    set_georeference();
    for (int64_t tile = 0; tile < tiles_.tiles_of_page(); ++tile) {
      std::string& bytes = tile_of(page * tiles_.tiles_of_page() + tile);
      check(TIFFWriteRawTile(tiff_, static_cast<uint32_t>(tile), bytes.data(), std::ssize(bytes)) >=
            0);
    }
    check(TIFFWriteDirectory(tiff_) == 1);
  }

 private:
  [[noreturn]] void refuse() {
    if (sink_.failure) std::rethrow_exception(sink_.failure);
    throw_error<InvalidInput>("[tiff] cannot write {}: libtiff says: {}", path_,
                              sink_.complaint.data());
  }
  void check(bool done) {
    if (!done) refuse();
  }
  template <class... Values>
  void set(uint32_t tag, Values... values) {
    check(TIFFSetField(tiff_, tag, values...) == 1);
  }

  static int format_of(PixelType type) {
    if (is_real(type)) return SAMPLEFORMAT_IEEEFP;
    const bool is_signed = type == PixelType::kInt8 || type == PixelType::kInt16 ||
                           type == PixelType::kInt32 || type == PixelType::kInt64;
    return is_signed ? SAMPLEFORMAT_INT : SAMPLEFORMAT_UINT;
  }

  void set_layout() {
    const auto samples = static_cast<int>(tiles_.samples * tiles_.num_planes);
    const bool is_rgb = tiles_.samples == 3 &&
                        (info_.type == PixelType::kUint8 || info_.type == PixelType::kUint16);
    set(TIFFTAG_IMAGEWIDTH, static_cast<uint32_t>(tiles_.width));
    set(TIFFTAG_IMAGELENGTH, static_cast<uint32_t>(tiles_.height));
    set(TIFFTAG_BITSPERSAMPLE, static_cast<int>(8 * tiles_.element));
    set(TIFFTAG_SAMPLESPERPIXEL, samples);
    set(TIFFTAG_SAMPLEFORMAT, format_of(info_.type));
    set(TIFFTAG_PLANARCONFIG, tiles_.num_planes > 1 ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
    set(TIFFTAG_PHOTOMETRIC, is_rgb ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    const std::vector<uint16_t> extra(static_cast<size_t>(samples - (is_rgb ? 3 : 1)),
                                      EXTRASAMPLE_UNSPECIFIED);
    if (!extra.empty()) set(TIFFTAG_EXTRASAMPLES, static_cast<int>(extra.size()), extra.data());
    set(TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
    set(TIFFTAG_TILEWIDTH, static_cast<uint32_t>(tiles_.tile_width));
    set(TIFFTAG_TILELENGTH, static_cast<uint32_t>(tiles_.tile_height));
  }

  // Depth, and what pages are, have no tags of their own; ImageJ's description says both.
  void set_spacing(int64_t page) {
    const std::vector<double>& spacing = info_.frame.spacing;
    if (spacing.size() >= 2) {
      set(TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
      set(TIFFTAG_XRESOLUTION, 10 / spacing[spacing.size() - 1]);
      set(TIFFTAG_YRESOLUTION, 10 / spacing[spacing.size() - 2]);
    }
    const std::string page_axes =
        info_.axes.substr(0, info_.axes.empty() ? 0 : static_cast<size_t>(tiles_.num_page_axes));
    if (page > 0 || (page_axes != "Z" && page_axes != "PZ")) return;
    std::string text = fmt::format("ImageJ=1.53t\nimages={}\nslices={}\n", tiles_.num_pages,
                                   info_.shape[page_axes.size() - 1]);
    if (page_axes == "PZ") text += fmt::format("frames={}\n", info_.shape[0]);
    if (spacing.size() == 3) text += fmt::format("unit=mm\nspacing={}\n", spacing[0]);
    set(TIFFTAG_IMAGEDESCRIPTION, text.c_str());
  }

  void set_georeference() {
    const ImageFrame& frame = info_.frame;
    if (!frame.geotransform && !frame.no_data) return;
    constexpr auto kAny = static_cast<short>(TIFF_VARIABLE);
    static const TIFFFieldInfo fields[] = {
        {kTiffPixelScale, kAny, kAny, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1,
         const_cast<char*>("ModelPixelScale")},
        {kTiffTiepoint, kAny, kAny, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1,
         const_cast<char*>("ModelTiepoint")},
        {kTiffTransformation, kAny, kAny, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1,
         const_cast<char*>("ModelTransformation")},
        {kTiffGeoKeys, kAny, kAny, TIFF_SHORT, FIELD_CUSTOM, 1, 1,
         const_cast<char*>("GeoKeyDirectory")},
        {kTiffNoData, kAny, kAny, TIFF_ASCII, FIELD_CUSTOM, 1, 0,
         const_cast<char*>("GDAL_NODATA")}};
    TIFFMergeFieldInfo(tiff_, fields, std::size(fields));
    if (frame.geotransform) set_geotransform(*frame.geotransform);
    if (frame.no_data) set(kTiffNoData, fmt::format("{}", *frame.no_data).c_str());
  }

  void set_geotransform(const std::array<double, 6>& to_map) {
    if (to_map[2] == 0 && to_map[4] == 0 && to_map[1] > 0 && to_map[5] < 0) {
      const std::array<double, 3> scale{to_map[1], -to_map[5], 0};
      const std::array<double, 6> tie{0, 0, 0, to_map[0], to_map[3], 0};
      set(kTiffPixelScale, 3, scale.data());
      set(kTiffTiepoint, 6, tie.data());
    } else {
      const std::array<double, 16> matrix{to_map[1], to_map[2], 0, to_map[0], to_map[4], to_map[5],
                                          0,         to_map[3], 0, 0,         0,         0,
                                          0,         0,         0, 1};
      set(kTiffTransformation, 16, matrix.data());
    }
    const int code = epsg_code(info_.frame.projection);
    const bool geographic = is_geographic(info_.frame.projection, code);
    std::vector<uint16_t> keys{1, 1, 0, 1, kGeoKeyRasterType, 0, 1, 1};
    if (code > 0) {
      const auto model = static_cast<uint16_t>(geographic ? 2 : 1);
      const auto key = static_cast<uint16_t>(geographic ? kGeoKeyGeographic : kGeoKeyProjected);
      keys = {1, 1,   0, 3, kGeoKeyModelType,           0, 1, model, kGeoKeyRasterType, 0, 1,
              1, key, 0, 1, static_cast<uint16_t>(code)};
    }
    set(kTiffGeoKeys, static_cast<int>(keys.size()), keys.data());
  }

  const std::string& path_;
  const ArrayInfo& info_;
  const TiffTiles& tiles_;
  const InputFile written_;
  TiffSink sink_;
  TIFF* tiff_ = nullptr;
};

}  // namespace

void encode_tiff(TemporaryFile& target, const std::string& path, const ArrayInfo& info,
                 const TiffTiles& tiles, const std::function<std::string&(int64_t)>& tile_of) {
  TiffEncoder encoder(target, path, info, tiles);
  for (int64_t page = 0; page < tiles.num_pages; ++page) encoder.write_page(page, tile_of);
}

}  // namespace tessera

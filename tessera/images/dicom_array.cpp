// DICOM by GDCM. Only the slices of a box are read.

#include <gdcmBoxRegion.h>
#include <gdcmImageReader.h>
#include <gdcmImageRegionReader.h>
#include <gdcmTrace.h>

#include <cstring>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/images/box_runs.h"
#include "tessera/images/dicom_series.h"
#include "tessera/images/flat_array.h"
#include "tessera/images/formats.h"
#include "tessera/images/reader_process.h"

namespace tessera {
namespace {

// GDCM makes room for a value before it looks whether the file has so much.
constexpr int64_t kDicomMemory = 256 << 20;

/// A slice as GDCM gives it: channels last, or first where they are planar.
struct DecodedSlice {
  size_t index = SIZE_MAX;
  std::vector<char> bytes = {};
};

void interleave(std::vector<char>* planes, int64_t pixels, int64_t channels, int64_t bytes) {
  std::vector<char> mixed(planes->size());
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t pixel = 0; pixel < pixels; ++pixel)
      std::memcpy(mixed.data() + (pixel * channels + channel) * bytes,
                  planes->data() + (channel * pixels + pixel) * bytes, static_cast<size_t>(bytes));
  planes->swap(mixed);
}

class DicomArrayFile final : public ArrayFile {
 public:
  explicit DicomArrayFile(const std::string& path)
      : ArrayFile(path), series_(read_dicom_series(path)) {
    if (series_.slices.size() > 1) add_axis('Z', std::ssize(series_.slices));
    add_axis('Y', series_.height);
    add_axis('X', series_.width);
    if (series_.channels > 1) add_axis('C', series_.channels);
    for (const DicomSlice& slice : series_.slices) scaled_ |= slice.scale != LinearScale{};
    info_.type = scaled_ ? scaled_type(series_.stored) : series_.stored;
    info_.frame = series_.frame;
    checked_array_bytes(info_.shape, info_.type, "dicom", path);
  }

  // Readers have one thread, so the last slice can be kept without a lock.
  void read(const Box& box, void* to) const override {
    const bool stack = series_.slices.size() > 1;
    const Range slices = stack ? box[0] : Range{0, 1};
    const Box plane = stack ? without_axis(box, 0) : box;
    const int64_t bytes = bytes_of(info_.type), slice_bytes = plane.volume() * bytes;
    auto* next = static_cast<char*>(to);
    for (int64_t z = slices.begin; z < slices.end; ++z, next += slice_bytes) {
      const std::vector<char>& decoded = slice_at(static_cast<size_t>(z));
      copy_box(decoded.data(), slice_shape(), plane, bytes, next);
    }
  }

 private:
  void add_axis(char axis, int64_t size) {
    info_.axes += axis;
    info_.shape.push_back(size);
  }
  Shape slice_shape() const {
    Shape shape{series_.height, series_.width};
    if (series_.channels > 1) shape.push_back(series_.channels);
    return shape;
  }
  size_t stored_bytes() const {
    return static_cast<size_t>(series_.height * series_.width * series_.channels *
                               bytes_of(series_.stored));
  }

  const std::vector<char>& slice_at(size_t index) const {
    if (last_.index == index) return last_.bytes;
    last_.index = SIZE_MAX;
    const DicomSlice& slice = series_.slices[index];
    last_.bytes = decode(slice);
    if (scaled_) {
      const int64_t count = series_.height * series_.width * series_.channels;
      std::vector<char> scaled(static_cast<size_t>(count * bytes_of(info_.type)));
      scale_numbers(last_.bytes.data(), series_.stored, count, slice.scale, scaled.data());
      last_.bytes.swap(scaled);
    }
    last_.index = index;
    return last_.bytes;
  }

  std::vector<char> decode(const DicomSlice& slice) const {
    std::vector<char> bytes(stored_bytes());
    if (slice.num_frames == 1 || !read_frame(slice, &bytes)) read_all_frames(slice, &bytes);
    return bytes;
  }

  /// One frame of a file alone, where GDCM can do that.
  bool read_frame(const DicomSlice& slice, std::vector<char>* bytes) const {
    gdcm::ImageRegionReader reader;
    reader.SetFileName(slice.path.c_str());
    if (!reader.ReadInformation() || reader.GetImage().GetPlanarConfiguration() != 0) return false;
    gdcm::BoxRegion region;
    const auto frame = static_cast<unsigned>(slice.frame_index);
    region.SetDomain(0, static_cast<unsigned>(series_.width - 1), 0,
                     static_cast<unsigned>(series_.height - 1), frame, frame);
    reader.SetRegion(region);
    return reader.ComputeBufferLength() == bytes->size() &&
           reader.ReadIntoBuffer(bytes->data(), bytes->size());
  }

  void read_all_frames(const DicomSlice& slice, std::vector<char>* bytes) const {
    gdcm::ImageReader reader;
    reader.SetFileName(slice.path.c_str());
    if (!reader.Read()) refuse(slice, "its pixels cannot be decoded");
    const gdcm::Image& image = reader.GetImage();
    const size_t size = image.GetBufferLength(),
                 begin = static_cast<size_t>(slice.frame_index) * bytes->size();
    if (size < begin + bytes->size() || size % bytes->size() != 0)
      refuse(slice, "its pixels are not what its header says");
    std::vector<char> all(size);
    if (!image.GetBuffer(all.data())) refuse(slice, "its pixels cannot be decoded");
    std::memcpy(bytes->data(), all.data() + begin, bytes->size());
    if (series_.channels > 1 && image.GetPlanarConfiguration() != 0)
      interleave(bytes, series_.height * series_.width, series_.channels, bytes_of(series_.stored));
  }

  [[noreturn]] void refuse(const DicomSlice& slice, const char* why) const {
    throw_error<InvalidInput>("[dicom] {}: {}{}; the file is damaged, or its compression unknown",
                              path(), slice.path == path() ? "" : slice.path + ": ", why);
  }

  const DicomSeries series_;
  bool scaled_ = false;
  mutable DecodedSlice last_;
};

std::unique_ptr<ArrayFile> open_dicom_here(const std::string& path, const ArrayOptions&) {
  gdcm::Trace::WarningOff();
  gdcm::Trace::ErrorOff();
  return std::make_unique<DicomArrayFile>(path);
}

}  // namespace

std::unique_ptr<ArrayFile> open_dicom(const std::string& path, const ArrayOptions& options) {
  return open_in_reader(path, options, open_dicom_here, kDicomMemory);
}

}  // namespace tessera

#include "tessera/images/dicom_header.h"

#include <gdcmImageHelper.h>
#include <gdcmReader.h>
#include <gdcmSequenceOfItems.h>

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/input_file.h"

namespace tessera {
namespace {

const gdcm::Tag kSeries(0x0020, 0x000e), kImagePosition(0x0020, 0x0032),
    kImageOrientation(0x0020, 0x0037), kPixelSpacing(0x0028, 0x0030), kPixelData(0x7fe0, 0x0010),
    kRescaleSlope(0x0028, 0x1053), kRescaleIntercept(0x0028, 0x1052),
    kBetweenSlices(0x0018, 0x0088), kSliceThickness(0x0018, 0x0050), kPerFrame(0x5200, 0x9230),
    kShared(0x5200, 0x9229), kPlanePosition(0x0020, 0x9113), kPlaneOrientation(0x0020, 0x9116),
    kPixelMeasures(0x0028, 0x9110), kValueTransformation(0x0028, 0x9145);

/// Frames that have all of their own: a hostile file may claim any number.
constexpr int64_t kMostFrames = 1 << 20;

std::string dicom_text(const gdcm::DataSet& data, const gdcm::Tag& tag) {
  if (!data.FindDataElement(tag)) return "";
  const gdcm::ByteValue* const value = data.GetDataElement(tag).GetByteValue();
  if (value == nullptr || value->GetPointer() == nullptr) return "";
  std::string text(value->GetPointer(), value->GetLength());
  const size_t end = text.find_last_not_of(std::string(" \0", 2));
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

/// Decimal numbers with backslashes between them; empty where they are not `count` finite ones.
std::vector<double> dicom_numbers(const gdcm::DataSet& data, const gdcm::Tag& tag, size_t count) {
  std::vector<double> numbers;
  for (const std::string& word : split_text(dicom_text(data, tag), '\\')) {
    const size_t begin = word.find_first_not_of(" +"), end = word.find_last_not_of(' ');
    if (begin == std::string::npos) return {};
    const auto number = read_number<double>(std::string_view(word).substr(begin, end + 1 - begin));
    if (!number || !std::isfinite(*number)) return {};
    numbers.push_back(*number);
  }
  if (numbers.size() != count) numbers.clear();
  return numbers;
}

/// An item of the sequence; null where there is none.
const gdcm::DataSet* item_of(const gdcm::DataSet& data, const gdcm::Tag& tag, size_t index) {
  if (!data.FindDataElement(tag)) return nullptr;
  const auto items = data.GetDataElement(tag).GetValueAsSQ();
  if (!items || index >= items->GetNumberOfItems()) return nullptr;
  return &items->GetItem(index + 1).GetNestedDataSet();  // counted from one
}

/// The numbers of a tag where an enhanced file has them: of the frame, of all frames, or plainly.
std::vector<double> frame_numbers(const gdcm::DataSet& data, size_t frame, const gdcm::Tag& group,
                                  const gdcm::Tag& tag, size_t count) {
  for (const auto* holder : {item_of(data, kPerFrame, frame), item_of(data, kShared, 0)}) {
    const gdcm::DataSet* const macro = holder == nullptr ? nullptr : item_of(*holder, group, 0);
    if (macro == nullptr) continue;
    if (auto numbers = dicom_numbers(*macro, tag, count); !numbers.empty()) return numbers;
  }
  return dicom_numbers(data, tag, count);
}

PixelType dicom_type(const gdcm::PixelFormat& format, const std::string& path) {
  switch (format.GetScalarType()) {
    case gdcm::PixelFormat::UINT8:
      return PixelType::kUint8;
    case gdcm::PixelFormat::INT8:
      return PixelType::kInt8;
    case gdcm::PixelFormat::UINT16:
      return PixelType::kUint16;
    case gdcm::PixelFormat::INT16:
      return PixelType::kInt16;
    case gdcm::PixelFormat::UINT32:
      return PixelType::kUint32;
    case gdcm::PixelFormat::INT32:
      return PixelType::kInt32;
    case gdcm::PixelFormat::FLOAT32:
      return PixelType::kFloat32;
    case gdcm::PixelFormat::FLOAT64:
      return PixelType::kFloat64;
    default:
      throw_error<InvalidInput>(
          "[dicom] {}: pixels of {} bits are not supported; use 8, 16 or 32 bits", path,
          format.GetBitsAllocated());
  }
}

void take_pixels(const gdcm::File& file, DicomHeader* header) {
  const std::vector<unsigned> sizes = gdcm::ImageHelper::GetDimensionsValue(file);
  if (sizes.size() < 2 || sizes[0] == 0 || sizes[1] == 0)
    throw_error<InvalidInput>("[dicom] {}: holds no image", header->path);
  header->width = sizes[0];
  header->height = sizes[1];
  header->num_frames = sizes.size() > 2 ? std::max(1u, sizes[2]) : 1;
  if (header->num_frames > kMostFrames)
    throw_error<InvalidInput>("[dicom] {}: {} frames; at most {}", header->path, header->num_frames,
                              kMostFrames);
  const gdcm::PixelFormat format = gdcm::ImageHelper::GetPixelFormatValue(file);
  header->stored = dicom_type(format, header->path);
  header->channels = format.GetSamplesPerPixel();
  const gdcm::PhotometricInterpretation colours =
      gdcm::ImageHelper::GetPhotometricInterpretationValue(file);
  const bool grey =
      header->channels == 1 && (colours == gdcm::PhotometricInterpretation::MONOCHROME1 ||
                                colours == gdcm::PhotometricInterpretation::MONOCHROME2);
  const bool rgb = header->channels == 3 && colours == gdcm::PhotometricInterpretation::RGB;
  if (!grey && !rgb)
    throw_error<InvalidInput>(
        "[dicom] {}: colours are {} with {} samples; Tessera reads MONOCHROME1, MONOCHROME2 and "
        "RGB",
        header->path, colours.GetString() == nullptr ? "unknown" : colours.GetString(),
        header->channels);
}

/// Frames that the file describes one by one; 1 where one description is for all.
size_t num_described(const gdcm::DataSet& data, const DicomHeader& header) {
  return item_of(data, kPerFrame, 0) == nullptr ? 1 : static_cast<size_t>(header.num_frames);
}

bool are_alike(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double one, double other) {
    return std::abs(one - other) <= kDirectionTolerance;
  });
}

/// The header has one direction and one size of pixels.
void check_frames_alike(const gdcm::DataSet& data, const DicomHeader& header) {
  const auto orientation = frame_numbers(data, 0, kPlaneOrientation, kImageOrientation, 6);
  for (size_t frame = 1; frame < num_described(data, header); ++frame)
    if (!are_alike(frame_numbers(data, frame, kPlaneOrientation, kImageOrientation, 6),
                   orientation) ||
        frame_numbers(data, frame, kPixelMeasures, kPixelSpacing, 2) != header.spacing)
      throw_error<InvalidInput>(
          "[dicom] {}: frames 0 and {} have different orientations or sizes of pixels; a stack "
          "needs equal ones",
          header.path, frame);
}

void take_scales(const gdcm::DataSet& data, DicomHeader* header) {
  for (size_t frame = 0; frame < num_described(data, *header); ++frame) {
    LinearScale scale;
    const auto take = [&](const gdcm::Tag& tag, double* number) {
      if (const auto found = frame_numbers(data, frame, kValueTransformation, tag, 1);
          !found.empty())
        *number = found[0];
    };
    take(kRescaleSlope, &scale.slope);
    take(kRescaleIntercept, &scale.intercept);
    header->scales.push_back(scale);
  }
}

void take_place(const gdcm::DataSet& data, DicomHeader* header) {
  if (const auto o = frame_numbers(data, 0, kPlaneOrientation, kImageOrientation, 6); !o.empty())
    header->orientation = {{{o[0], o[1], o[2]}, {o[3], o[4], o[5]}}};
  header->spacing = frame_numbers(data, 0, kPixelMeasures, kPixelSpacing, 2);
  for (const gdcm::Tag& tag : {kBetweenSlices, kSliceThickness}) {
    const auto distance = frame_numbers(data, 0, kPixelMeasures, tag, 1);
    if (header->frame_distance == 0 && !distance.empty())
      header->frame_distance = std::abs(distance[0]);
  }
  check_frames_alike(data, *header);
  // A position of the whole file is that of its first frame.
  for (size_t frame = 0; frame < num_described(data, *header); ++frame) {
    const auto p = frame_numbers(data, frame, kPlanePosition, kImagePosition, 3);
    if (p.empty()) break;
    header->positions.push_back({p[0], p[1], p[2]});
  }
}

}  // namespace

DicomHeader read_dicom_header(const std::string& path) {
  const InputFile is_regular(path, "dicom");
  gdcm::Reader reader;
  reader.SetFileName(path.c_str());
  if (!reader.ReadUpToTag(kPixelData))
    throw_error<InvalidInput>("[dicom] {}: is not a DICOM file, or a damaged one", path);
  const gdcm::DataSet& data = reader.GetFile().GetDataSet();
  DicomHeader header;
  header.path = path;
  header.series = dicom_text(data, kSeries);
  take_pixels(reader.GetFile(), &header);
  take_place(data, &header);
  take_scales(data, &header);
  return header;
}

}  // namespace tessera

// DICOM series and files, written by GDCM.

#include <gdcmAttribute.h>
#include <gdcmImageChangeTransferSyntax.h>
#include <gdcmImageWriter.h>
#include <gdcmItem.h>
#include <gdcmReader.h>
#include <gdcmSequenceOfItems.h>
#include <gdcmTrace.h>
#include <gdcmWriter.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tessera/images/open_array.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::dicom_test {
namespace {

struct Made {
  unsigned width = 12, height = 10, frames = 1;
  gdcm::PixelFormat format = gdcm::PixelFormat::INT16;
  gdcm::TransferSyntax syntax = gdcm::TransferSyntax::ExplicitVRLittleEndian;
  std::vector<double> position = {-50, -60, -70};
  std::vector<double> orientation = {1, 0, 0, 0, 1, 0};
  double slope = 1, intercept = 0;
  std::string series = "1.2.3";
  int first_number = 0;  // of the pixels, which are counted up
};

template <class T>
std::string pixels_of(const Made& made) {
  const size_t count =
      size_t{made.width} * made.height * made.frames * made.format.GetSamplesPerPixel();
  std::string bytes(count * sizeof(T), '\0');
  for (size_t i = 0; i < count; ++i) {
    const T number = static_cast<T>(made.first_number + static_cast<int>(i));
    std::memcpy(bytes.data() + i * sizeof(T), &number, sizeof(T));
  }
  return bytes;
}

template <class T = int16_t>
void write_dicom(const std::string& path, const Made& made) {
  gdcm::SmartPointer<gdcm::Image> image = new gdcm::Image;
  image->SetNumberOfDimensions(made.frames > 1 ? 3 : 2);
  image->SetDimension(0, made.width);
  image->SetDimension(1, made.height);
  if (made.frames > 1) image->SetDimension(2, made.frames);
  image->SetPixelFormat(made.format);
  image->SetPhotometricInterpretation(made.format.GetSamplesPerPixel() == 3
                                          ? gdcm::PhotometricInterpretation::RGB
                                          : gdcm::PhotometricInterpretation::MONOCHROME2);
  image->SetTransferSyntax(gdcm::TransferSyntax::ExplicitVRLittleEndian);
  const std::string bytes = pixels_of<T>(made);
  gdcm::DataElement pixels(gdcm::Tag(0x7fe0, 0x0010));
  pixels.SetByteValue(bytes.data(), static_cast<uint32_t>(bytes.size()));
  image->SetDataElement(pixels);
  image->SetSpacing(0, 0.5);
  image->SetSpacing(1, 0.75);
  if (made.frames > 1) image->SetSpacing(2, 3);
  for (unsigned i = 0; i < 3; ++i) image->SetOrigin(i, made.position[i]);
  for (unsigned i = 0; i < 6; ++i) image->SetDirectionCosines(i, made.orientation[i]);
  image->SetSlope(made.slope);
  image->SetIntercept(made.intercept);
  gdcm::ImageChangeTransferSyntax change;
  change.SetTransferSyntax(made.syntax);
  change.SetInput(*image);
  ASSERT_TRUE(change.Change());
  gdcm::ImageWriter writer;
  writer.SetImage(change.GetOutput());
  writer.SetFileName(path.c_str());
  gdcm::DataSet& data = writer.GetFile().GetDataSet();
  gdcm::MediaStorage storage = gdcm::MediaStorage::CTImageStorage;
  if (made.frames > 1)
    storage = gdcm::MediaStorage::MultiframeGrayscaleWordSecondaryCaptureImageStorage;
  const std::string kind = storage.GetString();
  gdcm::DataElement element(gdcm::Tag(0x0008, 0x0016));
  element.SetByteValue(kind.data(), static_cast<uint32_t>(kind.size()));
  element.SetVR(gdcm::VR::UI);
  data.Replace(element);
  gdcm::Attribute<0x0020, 0x000e> series;
  series.SetValue(made.series);
  data.Replace(series.GetAsDataElement());
  ASSERT_TRUE(writer.Write());
}

using Numbers = std::vector<std::pair<gdcm::Tag, std::string>>;

gdcm::DataElement sequence(const gdcm::Tag& tag, const std::vector<gdcm::DataSet>& sets) {
  gdcm::SmartPointer<gdcm::SequenceOfItems> items = new gdcm::SequenceOfItems;
  items->SetLengthToUndefined();
  for (const gdcm::DataSet& set : sets) {
    gdcm::Item item;
    item.SetVLToUndefined();
    item.SetNestedDataSet(set);
    items->AddItem(item);
  }
  gdcm::DataElement element(tag);
  element.SetVR(gdcm::VR::SQ);
  element.SetValue(*items);
  element.SetVLToUndefined();
  return element;
}

/// Gives each frame of a file a group of numbers of its own, as enhanced files have them.
void describe_frames(const std::string& path, const gdcm::Tag& group,
                     const std::vector<Numbers>& frames) {
  gdcm::Reader reader;
  reader.SetFileName(path.c_str());
  ASSERT_TRUE(reader.Read());
  std::vector<gdcm::DataSet> sets;
  for (const Numbers& numbers : frames) {
    gdcm::DataSet described, own;
    for (const auto& [tag, text] : numbers) {
      gdcm::DataElement element(tag);
      element.SetVR(gdcm::VR::DS);
      element.SetByteValue(text.data(), static_cast<uint32_t>(text.size()));
      described.Insert(element);
    }
    own.Insert(sequence(group, {described}));
    sets.push_back(own);
  }
  gdcm::Writer writer;
  writer.SetFile(reader.GetFile());
  writer.GetFile().GetDataSet().Replace(sequence(gdcm::Tag(0x5200, 0x9230), sets));
  writer.SetFileName(path.c_str());
  ASSERT_TRUE(writer.Write());
}

class Dicom : public ::testing::Test {
 protected:
  Dicom() { gdcm::Trace::WarningOff(); }

  /// Slices that begin with z, in an order that is not that of their names.
  void write_series(int count) const {
    for (int z = 0; z < count; ++z) write_slice(z, count);
  }
  void write_slice(int z, int count, Made made = {}) const {
    made.position[2] += 2.5 * z;
    made.first_number = 1000 * z;
    write_dicom(folder_ / fmt::format("{:02}.dcm", (7 * z) % count), made);
  }
  std::string refused() const {
    return refusal([&] { open_array(folder_.path()); });
  }

  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
};

TEST_F(Dicom, ASeriesIsSortedByPosition) {
  write_series(5);
  const auto file = open_array(folder_.path());
  EXPECT_EQ(file->info().axes, "ZYX");
  EXPECT_EQ(file->shape(), (Shape{5, 10, 12}));
  EXPECT_EQ(file->type(), PixelType::kInt16);
  const std::vector<int16_t> numbers = numbers_of<int16_t>(*file);
  for (int z = 0; z < 5; ++z)
    for (int i = 0; i < 120; ++i)
      ASSERT_EQ(numbers[static_cast<size_t>(120 * z + i)], 1000 * z + i);
  expect_boxes_of_whole(*file);
  // Left and posterior become right and anterior.
  const std::array<double, 12> affine{-0.5, 0, 0, 50, 0, -0.75, 0, 60, 0, 0, 2.5, -70};
  for (size_t i = 0; i < 12; ++i)
    EXPECT_NEAR((*file->info().frame.affine)[i], affine[i], 1e-6) << i;
  EXPECT_EQ(file->info().frame.spacing, (std::vector<double>{2.5, 0.75, 0.5}));
}

TEST_F(Dicom, FilesWithoutAnEndingCountToo) {
  write_series(3);
  for (int i = 0; i < 3; ++i)
    std::filesystem::rename(folder_ / fmt::format("{:02}.dcm", i),
                            folder_ / fmt::format("1.2.840.{}", i));
  write_bytes(folder_ / "README", "not DICOM");
  write_bytes(folder_ / "notes.txt", "not DICOM");
  EXPECT_EQ(open_array(folder_.path())->shape(), (Shape{3, 10, 12}));
}

TEST_F(Dicom, OneFileIsAnImage) {
  write_dicom(folder_ / "a.dcm", {});
  const auto file = open_array(folder_ / "a.dcm");
  EXPECT_EQ(file->info().axes, "YX");
  EXPECT_EQ(file->shape(), (Shape{10, 12}));
  EXPECT_EQ(file->info().frame.spacing, (std::vector<double>{0.75, 0.5}));
  expect_boxes_of_whole(*file);
}

TEST_F(Dicom, ScaledNumbersAreReal) {
  Made made;
  made.slope = 0.5;
  made.intercept = -1024;
  write_dicom(folder_ / "a.dcm", made);
  const auto file = open_array(folder_ / "a.dcm");
  EXPECT_EQ(file->type(), PixelType::kFloat32);
  const std::vector<float> numbers = numbers_of<float>(*file);
  for (size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(numbers[i], 0.5f * static_cast<float>(i) - 1024);
}

TEST_F(Dicom, FramesOfOneFileAreSlices) {
  Made made;
  made.frames = 4;
  made.format = gdcm::PixelFormat::UINT16;
  write_dicom<uint16_t>(folder_ / "a.dcm", made);
  const auto file = open_array(folder_ / "a.dcm");
  EXPECT_EQ(file->shape(), (Shape{4, 10, 12}));
  EXPECT_EQ(read_whole(*file), pixels_of<uint16_t>(made));
  expect_boxes_of_whole(*file);
}

/// PET rescales every slice by itself.
TEST_F(Dicom, FramesHaveScalesOfTheirOwn) {
  Made made;
  made.frames = 3;
  made.format = gdcm::PixelFormat::UINT16;
  write_dicom<uint16_t>(folder_ / "a.dcm", made);
  const gdcm::Tag slope(0x0028, 0x1053), intercept(0x0028, 0x1052);
  describe_frames(folder_ / "a.dcm", gdcm::Tag(0x0028, 0x9145),
                  {{{intercept, "0 "}, {slope, "1 "}},
                   {{intercept, "10"}, {slope, "2 "}},
                   {{intercept, "-5"}, {slope, "0.5 "}}});
  const auto file = open_array(folder_ / "a.dcm");
  ASSERT_EQ(file->type(), PixelType::kFloat32);
  const std::vector<float> numbers = numbers_of<float>(*file);
  ASSERT_EQ(numbers.size(), 360u);
  for (size_t i = 0; i < 120; ++i) {
    EXPECT_EQ(numbers[i], static_cast<float>(i));
    EXPECT_EQ(numbers[120 + i], 2 * static_cast<float>(120 + i) + 10);
    EXPECT_EQ(numbers[240 + i], 0.5f * static_cast<float>(240 + i) - 5);
  }
}

TEST_F(Dicom, FramesOfOneStackHaveOneSizeOfPixels) {
  Made made;
  made.frames = 2;
  made.format = gdcm::PixelFormat::UINT16;
  write_dicom<uint16_t>(folder_ / "a.dcm", made);
  const gdcm::Tag group(0x0028, 0x9110), spacing(0x0028, 0x0030);
  describe_frames(folder_ / "a.dcm", group, {{{spacing, "0.5\\0.5 "}}, {{spacing, "0.5\\0.5 "}}});
  EXPECT_EQ(open_array(folder_ / "a.dcm")->shape(), (Shape{2, 10, 12}));
  describe_frames(folder_ / "a.dcm", group, {{{spacing, "0.5\\0.5 "}}, {{spacing, "0.5\\0.7 "}}});
  expect_refusal([&] { open_array(folder_ / "a.dcm"); },
                 "frames 0 and 1 have different orientations or sizes of pixels");
}

TEST_F(Dicom, EveryTypeAndCompression) {
  const auto expect = [&]<class T>(T, gdcm::PixelFormat format, PixelType type,
                                   gdcm::TransferSyntax::TSType syntax) {
    Made made;
    made.format = format;
    made.syntax = syntax;
    write_dicom<T>(folder_ / "a.dcm", made);
    const auto file = open_array(folder_ / "a.dcm");
    EXPECT_EQ(file->type(), type);
    EXPECT_EQ(read_whole(*file), pixels_of<T>(made));
    expect_boxes_of_whole(*file, 10);
  };
  using Syntax = gdcm::TransferSyntax;
  expect(uint8_t{}, gdcm::PixelFormat::UINT8, PixelType::kUint8, Syntax::ExplicitVRLittleEndian);
  expect(uint16_t{}, gdcm::PixelFormat::UINT16, PixelType::kUint16, Syntax::ExplicitVRLittleEndian);
  expect(int16_t{}, gdcm::PixelFormat::INT16, PixelType::kInt16, Syntax::RLELossless);
  expect(uint16_t{}, gdcm::PixelFormat::UINT16, PixelType::kUint16,
         Syntax::JPEGLosslessProcess14_1);
  expect(uint8_t{}, gdcm::PixelFormat::UINT8, PixelType::kUint8, Syntax::JPEG2000Lossless);
  expect(uint8_t{}, gdcm::PixelFormat(3, 8, 8, 7, 0), PixelType::kUint8,
         Syntax::ExplicitVRLittleEndian);
  EXPECT_EQ(open_array(folder_ / "a.dcm")->info().axes, "YXC");
}

TEST_F(Dicom, WhatIsNotOneStackIsRefused) {
  write_series(5);
  std::filesystem::remove(folder_ / "02.dcm");
  EXPECT_TRUE(has(refused(), "a slice is missing")) << refused();
  write_series(5);
  std::filesystem::copy_file(folder_ / "02.dcm", folder_ / "copy.dcm");
  EXPECT_TRUE(has(refused(), "two slices at one position")) << refused();
  std::filesystem::remove(folder_ / "copy.dcm");
  Made other;
  other.series = "4.5.6";
  write_slice(1, 5, other);
  EXPECT_TRUE(has(refused(), "holds several series")) << refused();
  other = {};
  other.width = 13;
  write_slice(1, 5, other);
  EXPECT_TRUE(has(refused(), "slices differ")) << refused();
  other = {};
  other.orientation = {0, 1, 0, 1, 0, 0};
  write_slice(1, 5, other);
  EXPECT_TRUE(has(refused(), "different orientations")) << refused();
}

TEST_F(Dicom, WhatIsNotDicomIsRefused) {
  write_bytes(folder_ / "a.dcm", "not DICOM");
  expect_refusal([&] { open_array(folder_ / "a.dcm"); }, "is not a DICOM file");
  expect_refusal([&] { open_array(folder_ / "none.dcm"); }, "No such file");
  std::filesystem::create_directory(folder_ / "empty");
  expect_refusal([&] { open_array(folder_ / "empty"); }, "empty");
}

}  // namespace
}  // namespace tessera::dicom_test

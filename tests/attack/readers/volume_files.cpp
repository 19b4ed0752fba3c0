#include "tests/attack/readers/volume_files.h"

#include <filesystem>
#include <numeric>

#include "tessera/images/array_file.h"
#include "tessera/images/array_writer.h"
#ifdef TESSERA_HAS_HDF5
#include <hdf5.h>
#endif
#ifdef TESSERA_HAS_GDCM
#include <gdcmImageChangeTransferSyntax.h>
#include <gdcmImageWriter.h>
#include <gdcmTrace.h>
#endif
#ifdef TESSERA_HAS_GDAL
#include <gdal.h>
#endif
#include "tests/unit/scratch_folder.h"

namespace tessera {
namespace {

using Files = std::vector<std::string>;

/// By the formats that this program writes.
Files written_files(const std::string& folder, const std::string& ending) {
  const auto write = [&](const std::string& name, const ArrayInfo& info) {
    const std::string path = folder + "/" + name + ending;
    const auto writer = create_array_writer(path, info);
    const Box whole = Box::whole(info.shape);
    std::vector<char> numbers(static_cast<size_t>(whole.volume() * bytes_of(info.type)));
    std::iota(numbers.begin(), numbers.end(), '\0');
    writer->write(whole, numbers.data());
    writer->commit();
    return path;
  };
  ImageFrame frame;
  frame.affine = {2, 0, 0, -9, 0, 2, 0, 8, 0, 0, 2, 1};
  return {write("a", {{4, 5, 6}, "ZYX", PixelType::kInt16, frame}),
          write("b", {{2, 3, 4, 3}, "ZYXC", PixelType::kUint8, {}}),
          write("c", {{1, 2, 40'000}, "ZYX", PixelType::kUint8, {}})};  // version 2 of NIfTI
}

#ifdef TESSERA_HAS_HDF5
/// With arrays that are contiguous, compact, and in packed chunks.
std::string hdf5_file(const std::string& path, H5D_layout_t layout, bool newest) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (newest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t sizes[3] = {6, 10, 12}, chunk[3] = {4, 4, 4};
  H5Pset_layout(creation, layout);
  if (layout == H5D_CHUNKED) {
    H5Pset_chunk(creation, 3, chunk);
    H5Pset_shuffle(creation);
    H5Pset_deflate(creation, 6);
    H5Pset_fletcher32(creation);
  }
  const hid_t space = H5Screate_simple(3, sizes, nullptr);
  const hid_t array =
      H5Dcreate2(group, "image", H5T_STD_I16BE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  std::vector<int16_t> numbers(720);
  std::iota(numbers.begin(), numbers.end(), int16_t{0});
  H5Dwrite(array, H5T_NATIVE_INT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data());
  H5Dclose(array);
  H5Sclose(space);
  H5Pclose(creation);
  H5Gclose(group);
  H5Fclose(file);
  H5Pclose(access);
  return path;
}
#endif

#ifdef TESSERA_HAS_GDCM
std::string dicom_file(const std::string& path, gdcm::TransferSyntax::TSType syntax) {
  gdcm::SmartPointer<gdcm::Image> image = new gdcm::Image;
  image->SetNumberOfDimensions(2);
  image->SetDimension(0, 12);
  image->SetDimension(1, 10);
  image->SetPixelFormat(gdcm::PixelFormat::UINT8);
  image->SetPhotometricInterpretation(gdcm::PhotometricInterpretation::MONOCHROME2);
  image->SetTransferSyntax(gdcm::TransferSyntax::ExplicitVRLittleEndian);
  std::string bytes(120, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  gdcm::DataElement pixels(gdcm::Tag(0x7fe0, 0x0010));
  pixels.SetByteValue(bytes.data(), static_cast<uint32_t>(bytes.size()));
  image->SetDataElement(pixels);
  gdcm::ImageChangeTransferSyntax change;
  change.SetTransferSyntax(syntax);
  change.SetInput(*image);
  change.Change();
  gdcm::ImageWriter writer;
  writer.SetImage(change.GetOutput());
  writer.SetFileName(path.c_str());
  writer.Write();
  return path;
}
#endif

#ifdef TESSERA_HAS_GDAL
std::string raster_file(const std::string& path, const char* driver) {
  GDALAllRegister();
  const GDALDatasetH raster =
      GDALCreate(GDALGetDriverByName(driver), path.c_str(), 20, 16, 2, GDT_Byte, nullptr);
  std::vector<unsigned char> numbers(640);
  std::iota(numbers.begin(), numbers.end(), static_cast<unsigned char>(0));
  if (GDALDatasetRasterIO(raster, GF_Write, 0, 0, 20, 16, numbers.data(), 20, 16, GDT_Byte, 2,
                          nullptr, 0, 0, 0) != CE_None)
    return "";
  GDALClose(raster);
  return path;
}

/// Empty where GDAL cannot write it.
Files jpeg2000_files(const std::string& folder) {
  const GDALDriverH driver = GDALGetDriverByName("JP2OpenJPEG");
  if (driver == nullptr) return {};
  const std::string path = folder + "/a.jp2";
  const GDALDatasetH from = GDALOpen((folder + "/a.img").c_str(), GA_ReadOnly);
  GDALClose(GDALCreateCopy(driver, path.c_str(), from, 0, nullptr, nullptr, nullptr));
  GDALClose(from);
  return {path};
}
#endif

}  // namespace

std::vector<std::pair<std::string, Files>> make_volume_files(const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::vector<std::pair<std::string, Files>> all{{".npy", written_files(folder, ".npy")}};
#ifdef TESSERA_HAS_ZLIB
  all.emplace_back(".nii", written_files(folder, ".nii"));
  all.emplace_back(".nii.gz", written_files(folder, ".nii.gz"));
#endif
#ifdef TESSERA_HAS_HDF5
  all.emplace_back(".h5", Files{hdf5_file(folder + "/a.h5", H5D_CONTIGUOUS, false),
                                hdf5_file(folder + "/b.h5", H5D_CHUNKED, false),
                                hdf5_file(folder + "/c.h5", H5D_CHUNKED, true),
                                hdf5_file(folder + "/d.h5", H5D_COMPACT, true)});
#endif
#ifdef TESSERA_HAS_GDCM
  gdcm::Trace::WarningOff();
  using Syntax = gdcm::TransferSyntax;
  all.emplace_back(".dcm", Files{dicom_file(folder + "/a.dcm", Syntax::ExplicitVRLittleEndian),
                                 dicom_file(folder + "/b.dcm", Syntax::RLELossless),
                                 dicom_file(folder + "/c.dcm", Syntax::JPEG2000Lossless),
                                 dicom_file(folder + "/d.dcm", Syntax::JPEGLosslessProcess14_1),
                                 dicom_file(folder + "/e.dcm", Syntax::JPEGLSLossless)});
#endif
#ifdef TESSERA_HAS_GDAL
  all.emplace_back(".img", Files{raster_file(folder + "/a.img", "HFA")});
  if (const Files files = jpeg2000_files(folder); !files.empty()) all.emplace_back(".jp2", files);
  write_bytes(folder + "/a.asc",
              "ncols 3\nnrows 2\nxllcorner 10\nyllcorner 20\ncellsize 5\nNODATA_value -9999\n"
              "1 2 3\n4 5.5 -9999\n");
  all.emplace_back(".asc", Files{folder + "/a.asc"});
#endif
  return all;
}

}  // namespace tessera

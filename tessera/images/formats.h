#pragma once
// The formats, one opener each; open_array.cpp says which endings they have. Where a library is
// missing, its file is not built.

#include <memory>
#include <string>

#include "tessera/images/array_file.h"
#include "tessera/images/open_array.h"

namespace tessera {

std::unique_ptr<ArrayFile> open_npy(const std::string& path, const ArrayOptions& options);
std::unique_ptr<ArrayFile> open_raw(const std::string& path, const ArrayOptions& options);
std::unique_ptr<ArrayFile> open_png(const std::string& path, const ArrayOptions& options);
std::unique_ptr<ArrayFile> open_jpeg(const std::string& path, const ArrayOptions& options);
std::unique_ptr<ArrayFile> open_tiff(const std::string& path, const ArrayOptions& options);
std::unique_ptr<ArrayFile> open_slide(const std::string& path, const ArrayOptions& options);
std::unique_ptr<ArrayFile> open_nifti(const std::string& path, const ArrayOptions& options);
std::unique_ptr<ArrayFile> open_hdf5(const std::string& path, const ArrayOptions& options);
std::unique_ptr<ArrayFile> open_dicom(const std::string& path, const ArrayOptions& options);
std::unique_ptr<ArrayFile> open_raster(const std::string& path, const ArrayOptions& options);

}  // namespace tessera

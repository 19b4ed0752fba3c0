#pragma once
// The formats, one opener each, and one writer where they are written; open_array.cpp and
// array_writer.cpp say which endings they have. Where a library is missing, its files are not
// built.

#include <memory>
#include <string>

#include "tessera/images/array_file.h"
#include "tessera/images/array_writer.h"
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

/// Where `temporary` is empty the file is created, else joined.
std::unique_ptr<ArrayWriter> write_npy(const std::string& path, const ArrayInfo& info,
                                       const std::string& temporary);
std::unique_ptr<ArrayWriter> write_tiff(const std::string& path, const ArrayInfo& info,
                                        const std::string& temporary);
std::unique_ptr<ArrayWriter> write_png_array(const std::string& path, const ArrayInfo& info,
                                             const std::string& temporary);
std::unique_ptr<ArrayWriter> write_nifti(const std::string& path, const ArrayInfo& info,
                                         const std::string& temporary);

}  // namespace tessera

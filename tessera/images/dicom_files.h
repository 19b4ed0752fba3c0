#pragma once
// Which files are DICOM: those that end in .dcm, and those without an ending that bear its mark.
// This needs no library, so that a folder is known for what it is in any build.

#include <string>
#include <vector>

namespace tessera {

/// Whether the folder holds at least one.
bool is_dicom_folder(const std::string& path);

/// The file itself, or those in the folder, sorted by name. Throws InvalidInput where there are
/// none.
std::vector<std::string> dicom_files_of(const std::string& path);

}  // namespace tessera

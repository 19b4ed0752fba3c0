#pragma once
// Folders whose changes are on the disk when the call returns: a file that has been forced to the
// disk is still lost if its name is not.
//
// All throw InvalidInput with path, reason and remedy.

#include <string>

namespace tessera {

/// Makes the folder with its parents where it is missing.
void make_folder(const std::string& folder);

/// Forces the names in a folder to the disk: files made, renamed or removed in it.
void sync_folder(const std::string& folder);

/// Renames within one file system and forces both folders to the disk. Replaces a file at `to`.
void rename_durably(const std::string& from, const std::string& to);

/// The folder that holds `path`: "." where it names none.
std::string parent_folder(const std::string& path);

}  // namespace tessera

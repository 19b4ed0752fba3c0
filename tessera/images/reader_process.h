#pragma once
// Libraries that read images were not written for hostile files, and some crash on damaged ones.
// They run in processes of their own: one that crashes, hangs or eats the memory becomes an error
// that names the file, and what they print goes nowhere.
//
//   this process ──fork──► keeper ──fork──► reader: opens files, reads boxes
//        ▲                                    │
//        └────────── a socket each ◄──────────┘
//
// The keeper is forked at the first use, usually before the network has its memory, and does
// nothing but fork readers. So a reader that has to be replaced later does not come from a process
// of a hundred gigabytes, whose pages it would keep. It also has a single thread, and the libraries
// are not used outside readers: no lock of theirs is held when it forks.
//
// Readers keep their last files open. There are as many as threads that read at the same time, up
// to a few; a library that is not thread-safe does not notice.
//
// Example:
//   return open_in_reader(path, options, open_hdf5_here, int64_t{8} << 30);

#include <memory>
#include <string>

#include "tessera/images/array_file.h"
#include "tessera/images/open_array.h"

namespace tessera {

/// Opens a file in the process that calls it.
using ArrayOpener = std::unique_ptr<ArrayFile> (*)(const std::string& path,
                                                   const ArrayOptions& options);

/// An array whose file `open` has opened in a reader, where it is read, too. Errors of `open` and
/// of reading come as they are. Throws InvalidInput for a file on which the reader crashes or takes
/// more than two minutes, OutOfMemory where the system has no process left. `memory_bytes` is what
/// the library may take beyond a few times the file's size: a small file can hold much where it is
/// compressed.
std::unique_ptr<ArrayFile> open_in_reader(const std::string& path, const ArrayOptions& options,
                                          ArrayOpener open, int64_t memory_bytes);

}  // namespace tessera

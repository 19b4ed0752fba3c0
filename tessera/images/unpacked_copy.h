#pragma once
// An unpacked copy of a gzip file, so that any box of it can be read: gzip itself can only be read
// from its beginning. The copy is made once and kept for the next time.
//
//   brain.nii.gz ──► CACHE/3f9c...e856    where CACHE is $XDG_CACHE_HOME/tessera, ~/.cache/tessera
//                                         or, without a home, $TMPDIR/tessera-<user>
//
// Its name stands for path, size and times of the packed file: one that has changed is unpacked
// anew. Whoever needs a copy that another process is just making waits for it. A copy appears whole
// or not at all. All copies together stay within TESSERA_CACHE_LIMIT (such as 100GiB; 32GiB where
// it is not set): those that were not used for longest are removed, which does not disturb who has
// them open.
//
// Example:
//   const InputFile plain = open_unpacked(packed, expected_bytes, "nifti");

#include <cstdint>
#include <string>

#include "tessera/files/input_file.h"

namespace tessera {

/// Throws InvalidInput where the content has not exactly `expected_bytes`, which is found out
/// before anything larger is written, or the copy cannot be kept.
InputFile open_unpacked(const InputFile& packed, uint64_t expected_bytes, const std::string& place);

}  // namespace tessera

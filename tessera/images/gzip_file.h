#pragma once
// Packs a file into gzip, in bounded memory. The same content gives the same bytes.

#include "tessera/files/input_file.h"
#include "tessera/files/output_file.h"

namespace tessera {

/// Appends the packed content. Throws InvalidInput where a file cannot be read or written.
void append_packed(const InputFile& from, OutputFile* to);

}  // namespace tessera

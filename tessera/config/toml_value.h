#pragma once
// The values of the TOML reader: strings, numbers, booleans and arrays.

#include "tessera/config/toml.h"
#include "tessera/config/toml_cursor.h"

namespace tessera {

/// Reads a value and leaves the cursor behind it.
TomlValue read_toml_value(TomlCursor& cursor);

}  // namespace tessera

#pragma once
// The zlib format (RFC 1950, 1951) with fixed Huffman codes and matches found by a hash of three
// bytes: enough to keep pictures small, and no library to depend on.

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

std::string zlib_compress(std::string_view data);

}  // namespace tessera

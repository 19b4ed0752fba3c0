#include "tessera/data/png.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tessera/base/error.h"
#include "tessera/data/deflate.h"

namespace tessera {
namespace {

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t n = 0; n < 256; ++n) {
    uint32_t c = n;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
    table[n] = c;
  }
  return table;
}

uint32_t crc32(const std::string& data) {
  static const std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = 0xffffffffu;
  for (unsigned char byte : data) crc = table[(crc ^ byte) & 0xff] ^ crc >> 8;
  return ~crc;
}

std::string big_endian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  return big_endian(static_cast<uint32_t>(data.size())) + body + big_endian(crc32(body));
}

/// Each row behind the number of its filter: the first without one, the others as differences from
/// the row above where that repeats more of it.
std::string filtered_rows(const PngImage& image) {
  const size_t row_bytes = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  std::string rows;
  rows.reserve((row_bytes + 1) * static_cast<size_t>(image.height));
  for (size_t y = 0; y < static_cast<size_t>(image.height); ++y) {
    const uint8_t* row = image.pixels.data() + y * row_bytes;
    const bool same_as_above = y > 0 && std::memcmp(row, row - row_bytes, row_bytes) == 0;
    rows += same_as_above ? '\2' : '\0';
    if (same_as_above)
      rows.append(row_bytes, '\0');
    else
      rows.append(reinterpret_cast<const char*>(row), row_bytes);
  }
  return rows;
}

}  // namespace

std::string encode_png(const PngImage& image) {
  constexpr int64_t kMaxSize = 0x7fffffff;
  if (image.width < 1 || image.height < 1 || image.width > kMaxSize || image.height > kMaxSize)
    throw_error<InvalidInput>("[png] a picture has 1 to 2^31-1 pixels a side, got {} x {}",
                              image.width, image.height);
  if (image.channels != 1 && image.channels != 3)
    throw_error<InvalidInput>("[png] a picture has 1 or 3 channels, got {}", image.channels);
  // At most 3 x 2^62, which 64 bits without a sign hold.
  const uint64_t needed = static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height) *
                          static_cast<uint64_t>(image.channels);
  if (needed != image.pixels.size())
    throw_error<InvalidInput>("[png] {} x {} x {} does not match {} bytes of pixels", image.width,
                              image.height, image.channels, image.pixels.size());
  const std::string data = zlib_compress(filtered_rows(image));
  if (data.size() > static_cast<size_t>(kMaxSize))
    throw_error<InvalidInput>("[png] {} x {} is too large for one picture; use .npy", image.width,
                              image.height);
  std::string header = big_endian(static_cast<uint32_t>(image.width));
  header += big_endian(static_cast<uint32_t>(image.height));
  header += '\x08';
  header += image.channels == 1 ? '\x00' : '\x02';
  header.append(3, '\0');
  return std::string("\x89PNG\r\n\x1a\n", 8) + chunk("IHDR", header) + chunk("IDAT", data) +
         chunk("IEND", "");
}

void write_png(const std::string& path, const PngImage& image) {
  const std::string bytes = encode_png(image);
  const std::string partial = fmt::format("{}.partial", path);
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file || std::rename(partial.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(partial.c_str());
    throw_error<InvalidInput>("[png] cannot write '{}': {}", path, std::strerror(error));
  }
}

}  // namespace tessera

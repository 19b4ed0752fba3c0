#include "tessera/data/deflate.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tessera {
namespace {

constexpr int kMinMatch = 3, kMaxMatch = 258;
constexpr int64_t kWindow = 32768;

/// Lengths and distances are coded as a class, whose smallest member is listed here, and extra bits
/// that tell the member (RFC 1951, 3.2.5).
constexpr std::array<int, 29> kLengthBase{3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                          15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                          67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<int, 30> kDistanceBase{
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};

int length_extra_bits(int index) { return index < 8 || index == 28 ? 0 : index / 4 - 1; }
int distance_extra_bits(int index) { return index < 4 ? 0 : index / 2 - 1; }

template <size_t N>
int class_of(const std::array<int, N>& bases, int value) {
  return static_cast<int>(std::upper_bound(bases.begin(), bases.end(), value) - bases.begin()) - 1;
}

class BitWriter {
 public:
  /// Least significant bit first, as deflate wants numbers.
  void number(uint32_t value, int bits) {
    pending_ |= static_cast<uint64_t>(value) << filled_;
    for (filled_ += bits; filled_ >= 8; filled_ -= 8, pending_ >>= 8)
      bytes_ += static_cast<char>(pending_ & 0xff);
  }
  /// Most significant bit first, as it wants Huffman codes.
  void code(uint32_t value, int bits) {
    uint32_t reversed = 0;
    for (int i = 0; i < bits; ++i) reversed |= (value >> i & 1) << (bits - 1 - i);
    number(reversed, bits);
  }
  std::string finish() {
    if (filled_ > 0) number(0, 8 - filled_);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  uint64_t pending_ = 0;
  int filled_ = 0;
};

/// The fixed code of a literal, the end of the block or a length class (RFC 1951, 3.2.6).
void write_symbol(BitWriter* out, int symbol) {
  if (symbol < 144)
    out->code(0x30 + symbol, 8);
  else if (symbol < 256)
    out->code(0x190 + symbol - 144, 9);
  else if (symbol < 280)
    out->code(symbol - 256, 7);
  else
    out->code(0xc0 + symbol - 280, 8);
}

void write_match(BitWriter* out, int length, int distance) {
  const int length_class = class_of(kLengthBase, length);
  write_symbol(out, 257 + length_class);
  out->number(length - kLengthBase[length_class], length_extra_bits(length_class));
  const int distance_class = class_of(kDistanceBase, distance);
  out->code(distance_class, 5);
  out->number(distance - kDistanceBase[distance_class], distance_extra_bits(distance_class));
}

uint32_t adler32(std::string_view data) {
  uint32_t a = 1, b = 0;
  for (unsigned char byte : data) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

/// The last position at which three bytes of the same hash began.
class MatchFinder {
 public:
  explicit MatchFinder(std::string_view data) : data_(data), last_(1 << 15, -kWindow - 1) {}

  /// Where an earlier copy of what begins at `at` may be; remembers `at`.
  int64_t exchange(int64_t at) {
    uint32_t key = 0;
    for (int i = 0; i < kMinMatch; ++i) key = key << 8 | static_cast<unsigned char>(data_[at + i]);
    int64_t& slot = last_[key * 2654435761u >> 17];
    return std::exchange(slot, at);
  }

  int match_length(int64_t candidate, int64_t at) const {
    if (at - candidate > kWindow) return 0;
    const int64_t limit = std::min<int64_t>(kMaxMatch, static_cast<int64_t>(data_.size()) - at);
    int64_t length = 0;
    while (length < limit && data_[candidate + length] == data_[at + length]) ++length;
    return static_cast<int>(length);
  }

 private:
  std::string_view data_;
  std::vector<int64_t> last_;
};

}  // namespace

std::string zlib_compress(std::string_view data) {
  BitWriter out;
  out.number(0x78, 8);  // deflate, window of 32 KiB
  out.number(0x01, 8);  // makes the two bytes a multiple of 31
  out.number(1, 1);     // the last block
  out.number(1, 2);     // of fixed codes
  MatchFinder finder(data);
  const int64_t size = static_cast<int64_t>(data.size());
  for (int64_t at = 0; at < size;) {
    const int64_t candidate = at + kMinMatch <= size ? finder.exchange(at) : at - kWindow - 1;
    const int length = finder.match_length(candidate, at);
    if (length < kMinMatch) {
      write_symbol(&out, static_cast<unsigned char>(data[at++]));
      continue;
    }
    write_match(&out, length, static_cast<int>(at - candidate));
    for (const int64_t end = at + length; ++at < end;)
      if (at + kMinMatch <= size) finder.exchange(at);
  }
  write_symbol(&out, 256);
  std::string bytes = out.finish();
  const uint32_t checksum = adler32(data);
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(checksum >> shift & 0xff);
  return bytes;
}

}  // namespace tessera

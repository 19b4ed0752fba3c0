// PNG files, taken apart by a decoder that shares nothing with the encoder.

#include "tessera/data/png.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/data/deflate.h"
#include "tests/unit/data/npy_bytes.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::png_test {
namespace {

/// Inflates blocks of fixed Huffman codes, one bit at a time (RFC 1951, 3.2.6).
class Inflater {
 public:
  explicit Inflater(const std::string& bytes) : bytes_(bytes) {}

  std::string inflate() {
    EXPECT_EQ((number(8) * 256 + number(8)) % 31, 0u);
    bool last = false;
    while (!last) {
      last = number(1) == 1;
      if (number(2) != 1) throw std::runtime_error("not a block of fixed codes");
      while (symbol()) {
      }
    }
    return out_;
  }

 private:
  uint32_t bit() {
    const uint32_t result = static_cast<unsigned char>(bytes_.at(at_ / 8)) >> (at_ % 8) & 1;
    ++at_;
    return result;
  }
  uint32_t number(int bits) {
    uint32_t result = 0;
    for (int i = 0; i < bits; ++i) result |= bit() << i;
    return result;
  }
  uint32_t more(uint32_t code, int bits) {
    while (bits-- > 0) code = code << 1 | bit();
    return code;
  }
  /// False at the end of the block.
  bool symbol() {
    uint32_t code = more(0, 7);
    if (code < 0x18) {
      if (code > 0) copy(static_cast<int>(code) + 256);
      return code > 0;
    }
    code = more(code, 1);
    if (code < 0xc0)
      out_ += static_cast<char>(code - 0x30);
    else if (code < 0xc8)
      copy(static_cast<int>(code) - 0xc0 + 280);
    else
      out_ += static_cast<char>(more(code, 1) - 0x190 + 144);
    return true;
  }
  void copy(int length_symbol) {
    int length = 3, extra = 0;
    for (int s = 257; s < length_symbol; ++s) {
      length += 1 << (s < 265 ? 0 : (s - 261) / 4);
      extra = s + 1 < 265 ? 0 : (s + 1 - 261) / 4;
    }
    if (length_symbol == 285) length = 258, extra = 0;
    length += static_cast<int>(number(extra));
    const uint32_t distance_symbol = more(0, 5);
    uint32_t distance = 1;
    for (uint32_t s = 0; s < distance_symbol; ++s) distance += 1u << (s < 4 ? 0 : s / 2 - 1);
    distance += number(distance_symbol < 4 ? 0 : static_cast<int>(distance_symbol) / 2 - 1);
    if (distance > out_.size()) throw std::runtime_error("a distance before the beginning");
    for (int i = 0; i < length; ++i) out_ += out_[out_.size() - distance];
  }

  const std::string& bytes_;
  size_t at_ = 0;
  std::string out_;
};

std::string random_text(Random& random, int64_t size, int64_t letters) {
  std::string text;
  while (static_cast<int64_t>(text.size()) < size) {
    if (!text.empty() && random.between(0, 9) == 0) {  // an earlier part again
      const int64_t from = random.between(0, static_cast<int64_t>(text.size()) - 1);
      text += text.substr(static_cast<size_t>(from), static_cast<size_t>(random.between(1, 400)));
    } else {
      text += static_cast<char>(random.between(0, letters));
    }
  }
  return text;
}

TEST(Deflate, InflatesToWhatItWas) {
  std::string long_runs(40000, 'x');
  long_runs.push_back('y');
  long_runs.append(258, 'x');
  const std::vector<std::string> texts{"", "a", "ab", "aaa", std::string(100000, '\0'), long_runs};
  for (const std::string& text : texts) EXPECT_EQ(Inflater(zlib_compress(text)).inflate(), text);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const std::string text =
        random_text(random, random.between(1, 90000), seed % 2 == 0 ? 255 : random.between(0, 20));
    ASSERT_EQ(Inflater(zlib_compress(text)).inflate(), text) << "seed " << seed;
  }
}

TEST(Deflate, ShrinksWhatRepeatsAndBarelyGrowsWhatDoesNot) {
  EXPECT_LT(zlib_compress(std::string(100000, 'x')).size(), 1000u);
  Random random(1);
  std::string noise;
  for (int i = 0; i < 100000; ++i) noise += static_cast<char>(random.between(0, 255));
  EXPECT_LT(zlib_compress(noise).size(), 113000u);
}

// The checksum of "Wikipedia", as published with the algorithm.
TEST(Deflate, EndsWithTheChecksum) {
  const std::string bytes = zlib_compress("Wikipedia");
  EXPECT_EQ(bytes.substr(bytes.size() - 4), std::string("\x11\xe6\x03\x98", 4));
}

struct Chunk {
  std::string type;
  std::string data;
  uint32_t crc;
};

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i)
    number = number << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return number;
}

std::vector<Chunk> chunks(const std::string& bytes) {
  std::vector<Chunk> result;
  for (size_t at = 8; at < bytes.size();) {
    const uint32_t size = big_endian(bytes, at);
    result.push_back(
        {bytes.substr(at + 4, 4), bytes.substr(at + 8, size), big_endian(bytes, at + 8 + size)});
    at += 12 + size;
  }
  return result;
}

/// Undoes the filters 0 (none) and 2 (difference from the row above).
std::vector<uint8_t> unfiltered(const std::string& rows, size_t row_bytes) {
  std::vector<uint8_t> pixels;
  for (size_t at = 0; at < rows.size(); at += row_bytes + 1) {
    EXPECT_TRUE(rows[at] == 0 || rows[at] == 2);
    for (size_t i = 0; i < row_bytes; ++i) {
      const uint8_t above = rows[at] == 2 ? pixels.at(pixels.size() - row_bytes) : 0;
      pixels.push_back(static_cast<uint8_t>(above + static_cast<uint8_t>(rows.at(at + 1 + i))));
    }
  }
  return pixels;
}

TEST(Png, DecodesToItsPixels) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    PngImage image{random.between(1, 70), random.between(1, 70), random.coin() ? 1 : 3, {}};
    image.pixels.resize(static_cast<size_t>(image.width * image.height * image.channels));
    const bool flat = random.coin();
    for (uint8_t& value : image.pixels)
      value = static_cast<uint8_t>(flat ? 9 : random.between(0, 255));
    const std::string bytes = encode_png(image);
    EXPECT_EQ(bytes.substr(0, 8), std::string("\x89PNG\r\n\x1a\n", 8));
    const std::vector<Chunk> parts = chunks(bytes);
    ASSERT_EQ(parts.size(), 3u);
    EXPECT_EQ(parts[0].type, "IHDR");
    EXPECT_EQ(big_endian(parts[0].data, 0), static_cast<uint32_t>(image.width));
    EXPECT_EQ(big_endian(parts[0].data, 4), static_cast<uint32_t>(image.height));
    EXPECT_EQ(parts[0].data.substr(8),
              std::string(image.channels == 1 ? "\x08\x00" : "\x08\x02", 2) + std::string(3, '\0'));
    EXPECT_EQ(parts[1].type, "IDAT");
    EXPECT_EQ(unfiltered(Inflater(parts[1].data).inflate(),
                         static_cast<size_t>(image.width * image.channels)),
              image.pixels);
    EXPECT_EQ(parts[2].type, "IEND");
    EXPECT_EQ(parts[2].crc, 0xae426082u);  // as in every PNG file
  }
}

TEST(Png, RefusesWhatIsNoPicture) {
  EXPECT_THROW(encode_png({0, 1, 1, {}}), InvalidInput);
  EXPECT_THROW(encode_png({1, -1, 1, {}}), InvalidInput);
  EXPECT_THROW(encode_png({1, 1, 2, {0, 0}}), InvalidInput);
  EXPECT_THROW(encode_png({2, 2, 3, std::vector<uint8_t>(11)}), InvalidInput);
  EXPECT_THROW(encode_png({0x7fffffff, 0x7fffffff, 3, {}}), InvalidInput);
}

TEST(Png, FilesAreWholeOrNotThere) {
  const ScratchFolder folder;
  const PngImage image{2, 1, 1, {0, 255}};
  write_png(folder.file("a.png"), image);
  EXPECT_EQ(read_bytes(folder.file("a.png")), encode_png(image));
  EXPECT_NE(message_of<InvalidInput>([&] {
              write_png(folder.file("none/a.png"), image);
            }).find("No such file"),
            std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace tessera::png_test

// Pictures come out of libpng as they went in; a build without it says what to install.

#include "tessera/data/png.h"

#include <gtest/gtest.h>

#ifdef TESSERA_HAS_PNG
#include <png.h>
#endif

#include "tests/unit/geometry/random_layout.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::png_test {
namespace {

#ifdef TESSERA_HAS_PNG

/// The picture in `bytes`, in the channels that the file itself has.
PngImage decode(const std::string& bytes) {
  png_image reader{};
  reader.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&reader, bytes.data(), bytes.size()) == 0)
    throw std::runtime_error(reader.message);
  const int channels = static_cast<int>(PNG_IMAGE_SAMPLE_CHANNELS(reader.format));
  EXPECT_EQ(reader.format & ~PNG_FORMAT_FLAG_COLOR, 0u) << "8 bits, no palette, not transparent";
  PngImage image{reader.width, reader.height, channels, {}};
  image.pixels.resize(PNG_IMAGE_SIZE(reader));
  if (png_image_finish_read(&reader, nullptr, image.pixels.data(), 0, nullptr) == 0)
    throw std::runtime_error(reader.message);
  return image;
}

TEST(Png, DecodesToItsPixels) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    PngImage image{random.between(1, 70), random.between(1, 70), random.coin() ? 1 : 3, {}};
    image.pixels.resize(static_cast<size_t>(image.width * image.height * image.channels));
    const bool flat = random.coin();
    for (uint8_t& value : image.pixels)
      value = static_cast<uint8_t>(flat ? 9 : random.between(0, 255));
    const std::string bytes = encode_png(image);
    EXPECT_EQ(bytes.substr(0, 8), std::string("\x89PNG\r\n\x1a\n", 8));
    const PngImage decoded = decode(bytes);
    EXPECT_EQ(decoded.width, image.width);
    EXPECT_EQ(decoded.height, image.height);
    EXPECT_EQ(decoded.channels, image.channels);
    EXPECT_EQ(decoded.pixels, image.pixels);
  }
}

TEST(Png, ShrinksWhatRepeatsAndBarelyGrowsWhatDoesNot) {
  PngImage image{200, 500, 1, std::vector<uint8_t>(100000, 7)};
  EXPECT_LT(encode_png(image).size(), 1000u);
  Random random(1);
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(random.between(0, 255));
  EXPECT_LT(encode_png(image).size(), 101000u);
  EXPECT_EQ(decode(encode_png(image)).pixels, image.pixels);
}

TEST(Png, RefusesWhatIsNoPicture) {
  EXPECT_THROW(encode_png({0, 1, 1, {}}), InvalidInput);
  EXPECT_THROW(encode_png({1, -1, 1, {}}), InvalidInput);
  EXPECT_THROW(encode_png({1, 1, 2, {0, 0}}), InvalidInput);
  EXPECT_THROW(encode_png({2, 2, 3, std::vector<uint8_t>(11)}), InvalidInput);
  EXPECT_THROW(encode_png({0x7fffffff, 0x7fffffff, 3, {}}), InvalidInput);
  const std::vector<uint8_t> line(static_cast<size_t>(PNG_USER_WIDTH_MAX) + 1);
  expect_refusal([&] { encode_png({PNG_USER_WIDTH_MAX + 1, 1, 1, line}); }, "1 x 1 to 1000000");
}

TEST(Png, FilesAreWholeOrNotThere) {
  const ScratchFolder folder;
  const PngImage image{2, 1, 1, {0, 255}};
  write_png(folder / "a.png", image);
  EXPECT_EQ(read_bytes(folder / "a.png"), encode_png(image));
  expect_refusal([&] { write_png(folder / "none/a.png", image); }, "No such file");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a.png"});
}

#else

TEST(Png, SaysWhatToInstall) {
  const ScratchFolder folder;
  const std::string message = message_of<Unsupported>([&] {
    write_png(folder / "a.png", {2, 1, 1, {0, 255}});
  });
  EXPECT_TRUE(has(message, "install libpng-dev and build again")) << message;
  EXPECT_TRUE(names_in(folder.path()).empty());
}

#endif

}  // namespace
}  // namespace tessera::png_test

// Numbers as users write and read them.

#include "tessera/base/quantity.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/refusal.h"

namespace tessera::quantity_test {
namespace {

TEST(ParseSizes, ReadsAndRefuses) {
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(parse_sizes("7", "--space"), (Sizes{7}));
  EXPECT_EQ(parse_sizes("1x3x512x512", "--input"), (Sizes{1, 3, 512, 512}));
  EXPECT_EQ(parse_sizes("4611686018427387904", "--input"), (Sizes{int64_t{1} << 62}));
  const auto refused = [](const std::string& text, const std::string& part) {
    SCOPED_TRACE(text);
    expect_refusal([&] { parse_sizes(text, "--space"); }, part);
  };
  for (const char* text : {"", "x", "2x", "x2", "2xx3", "2X3", "2,3", "2 x 3", "2.5", "+2", "a"})
    refused(text,
            "[--space] \"" + std::string(text) + "\" is not a list of sizes; write them as 2x3");
  refused("2x0", "[--space] 2x0 holds 0; sizes are at least 1");
  refused("-1x2", "[--space] -1x2 holds -1; sizes are at least 1");
  refused("99999999999999999999", "holds a number that is too large");
  refused("4611686018427387904x2", "has more than 2^62 elements");
  refused("4611686018427387905", "has more than 2^62 elements");
}

TEST(ParseReals, ReadsAndRefuses) {
  EXPECT_EQ(parse_reals("1", "--weights"), (std::vector<double>{1}));
  EXPECT_EQ(parse_reals("1,0.4,-2e-1", "--weights"), (std::vector<double>{1, 0.4, -0.2}));
  expect_refusal([] { parse_reals("", "--weights"); }, "[--weights] holds no number");
  for (const char* text : {",", "1,,2", ",1", "a", "1,a", "1;2", "1x", "nan", "1,inf", "1e999"})
    expect_refusal(
        [&] { parse_reals(text, "--weights"); },
        "[--weights] \"" + std::string(text) + "\" is not a list of numbers; write them as 1,0.4");
}

TEST(ParseBytes, ReadsAndRefuses) {
  EXPECT_EQ(parse_bytes("1024", "--memory"), 1024);
  EXPECT_EQ(parse_bytes("7B", "--memory"), 7);
  EXPECT_EQ(parse_bytes("500MB", "--memory"), 500'000'000);
  EXPECT_EQ(parse_bytes("16GiB", "--memory"), int64_t{16} << 30);
  EXPECT_EQ(parse_bytes("1.5KiB", "--memory"), 1536);
  EXPECT_EQ(parse_bytes("2TB", "--memory"), 2'000'000'000'000);
  EXPECT_EQ(parse_bytes("3TiB", "--memory"), int64_t{3} << 40);
  for (const char* text :
       {"", "GiB", "0", "-1", "1 GiB", "1gib", "1Gi", "1GiBx", "nan", "inf", "1e300", "9999999TiB"})
    expect_refusal([&] { parse_bytes(text, "--memory"); },
                   "[--memory] \"" + std::string(text) +
                       "\" is not a size in bytes; write 16GiB, 500MB or 1024");
}

TEST(FormatBytes, HasTwoDigitsBehindThePoint) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(1'234'567), "1.18 MiB");
  EXPECT_EQ(format_bytes((int64_t{7} << 30) / 2), "3.50 GiB");
  EXPECT_EQ(format_bytes(int64_t{1000} << 40), "1000.00 TiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<int64_t>::max()), "8.00 EiB");
}

TEST(FormatBytes, NeverShows1024) {
  EXPECT_EQ(format_bytes((int64_t{1} << 20) - 6), "1023.99 KiB");
  EXPECT_EQ(format_bytes((int64_t{1} << 20) - 5), "1.00 MiB");
  EXPECT_EQ(format_bytes((int64_t{1} << 30) - 1), "1.00 GiB");
}

}  // namespace
}  // namespace tessera::quantity_test

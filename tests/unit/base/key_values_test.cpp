// Options as users write them, "key=value,key=value", and what they read where they are wrong.

#include "tessera/base/key_values.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/refusal.h"

namespace tessera::key_values_test {
namespace {

const std::vector<KeyInfo>& keys() {
  static const std::vector<KeyInfo> all{{"depth", "4", "1 to 12"},
                                        {"rate", "0.5", "0 to 1"},
                                        {"norm", "batch", "batch or none"},
                                        {"weights", "", "such as 1/2/1"}};
  return all;
}

KeyValues parse(const std::string& text) { return {"unet", text, keys()}; }

void expect_error(const std::string& text, const std::string& part) {
  SCOPED_TRACE(text);
  expect_refusal([&] { parse(text); }, part);
}

TEST(KeyValues, DefaultsAreThoseOfTheTable) {
  const KeyValues given = parse("");
  EXPECT_EQ(given.integer("depth", 1, 12), 4);
  EXPECT_EQ(given.real("rate", 0, 1), 0.5);
  EXPECT_EQ(given.choice("norm", {"none", "batch"}), "batch");
  EXPECT_TRUE(given.reals("weights", 0, 9).empty());
  EXPECT_TRUE(given.has("depth"));
  EXPECT_FALSE(given.has("weights"));
}

TEST(KeyValues, ReadsWhatIsGiven) {
  const KeyValues given = parse("weights=1/2.5/0,norm=none,rate=1e-3,depth=12");
  EXPECT_EQ(given.integer("depth", 1, 12), 12) << "ranges include their ends";
  EXPECT_EQ(given.real("rate", 0, 1), 0.001);
  EXPECT_EQ(given.choice("norm", {"batch", "none"}), "none");
  EXPECT_EQ(given.reals("weights", 0, 9), (std::vector<double>{1, 2.5, 0}));
  EXPECT_TRUE(given.has("weights"));
  using Limits = std::numeric_limits<int64_t>;
  EXPECT_EQ(parse("depth=-9223372036854775808").integer("depth", Limits::min(), 0), Limits::min());
  EXPECT_EQ(parse("depth=9223372036854775807").integer("depth", 0, Limits::max()), Limits::max());
}

TEST(KeyValues, RefusesMalformedTextAndNamesTheLegalKeys) {
  const std::string legal = " is not an option; write key=value; legal: depth, rate, norm, weights";
  expect_error(",", "[unet] ''" + legal);
  expect_error("depth=1,", "[unet] ''" + legal);
  expect_error("depth=1,,rate=1", "[unet] ''" + legal);
  expect_error("depth", "[unet] 'depth'" + legal);
  expect_error("depth=", "[unet] 'depth='" + legal);
  expect_error("=4", "[unet] '=4'" + legal);
}

TEST(KeyValues, RefusesUnknownAndRepeatedKeys) {
  expect_error("width=2", "[unet] has no option 'width'; legal: depth, rate, norm, weights");
  expect_error("Depth=2", "has no option 'Depth'");
  expect_error(" depth=2", "has no option ' depth'");
  expect_error("depth=2,depth=2", "[unet] option 'depth' is given twice; give it once");
  expect_refusal([] { KeyValues("loss mse", "beta=1", {}); },
                 "[loss mse] has no option 'beta'; it takes none");
}

TEST(KeyValues, RefusesValuesAndNamesTheLegal) {
  for (const char* value : {"0", "13", "-1", "4.0", "x", "4x", " 4", "4 ", "+4", "4=4", "0x4",
                            "1e1", "99999999999999999999"})
    expect_refusal([&] { parse(fmt::format("depth={}", value)).integer("depth", 1, 12); },
                   fmt::format("[unet] option depth={} must be an integer from 1 to 12", value));
  for (const char* value : {"-0.1", "1.1", "nan", "inf", "-inf", "0x1", " 0", "0.5f", "1e999"})
    expect_refusal([&] { parse(fmt::format("rate={}", value)).real("rate", 0, 1); },
                   fmt::format("[unet] option rate={} must be a number from 0 to 1", value));
  expect_refusal(
      [] {
        parse("norm=Batch").choice("norm", {"batch", "none"});
      },
      "[unet] option norm=Batch must be one of: batch, none");
  for (const char* value : {"/", "1/", "/1", "1//2", "1/x", "1/10", "1/nan", "1;2"})
    expect_refusal([&] { parse(fmt::format("weights={}", value)).reals("weights", 0, 9); },
                   fmt::format("[unet] option weights={} must be numbers from 0 to 9 with '/' "
                               "between",
                               value));
}

TEST(KeyValues, ReadingAKeyThatIsNotInTheTableIsOurBug) {
  EXPECT_NE(message_of<InternalError>([] {
              parse("").integer("width", 0, 1);
            }).find("[unet] reads option width, which is not in its table"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::key_values_test

// Lists of words, and texts as numbers.

#include "tessera/base/text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tessera::text_test {
namespace {

TEST(Words, AreJoinedAndSplit) {
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(joined({"a"}), "a");
  EXPECT_EQ(joined({"", "b", "c"}), ", b, c") << "an empty word is a word";
  EXPECT_EQ(joined({"2", "3"}, "x"), "2x3");
  using Words = std::vector<std::string>;
  EXPECT_EQ(split_text("a+b", '+'), (Words{"a", "b"}));
  EXPECT_EQ(split_text("", '+'), (Words{""}));
  EXPECT_EQ(split_text("+a++", '+'), (Words{"", "a", "", ""}));
}

TEST(Counts, HaveTheirNounInTheRightForm) {
  EXPECT_EQ(counted(1, "sample"), "1 sample");
  EXPECT_EQ(counted(0, "sample"), "0 samples");
  EXPECT_EQ(counted(12, "sample"), "12 samples");
  EXPECT_EQ(counted(1, "spatial axis", "spatial axes"), "1 spatial axis");
  EXPECT_EQ(counted(2, "spatial axis", "spatial axes"), "2 spatial axes");
}

TEST(ReadNumber, TakesTheWholeText) {
  EXPECT_EQ(read_number<int64_t>("-12"), -12);
  EXPECT_EQ(read_number<double>("1e-3"), 0.001);
  for (const char* text : {"", "x", "1x", " 1", "1 ", "+1", "1,5"}) {
    EXPECT_FALSE(read_number<int64_t>(text)) << text;
    EXPECT_FALSE(read_number<double>(text)) << text;
  }
  EXPECT_FALSE(read_number<int64_t>("1.0"));
  EXPECT_FALSE(read_number<int8_t>("128"));
}

}  // namespace
}  // namespace tessera::text_test

// What a mistyped word may have meant.

#include "tessera/base/suggestion.h"

#include <gtest/gtest.h>

namespace tessera::suggestion_test {
namespace {

TEST(EditDistance, CountsLettersAddedLeftOutReplacedAndSwapped) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("epohs", "epochs"), 1);
  EXPECT_EQ(edit_distance("epoochs", "epochs"), 1);
  EXPECT_EQ(edit_distance("epichs", "epochs"), 1);
  EXPECT_EQ(edit_distance("trian", "train"), 1) << "two neighbours swapped are one slip";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(NearestWord, IsTheOneWithTheFewestSlips) {
  const std::vector<std::string> options{"--learning-rate", "--min-learning-rate", "--batch-size",
                                         "--lr"};
  EXPECT_EQ(nearest_word("--lerning-rate", options), "--learning-rate");
  EXPECT_EQ(nearest_word("--min-lerning-rate", options), "--min-learning-rate");
  EXPECT_EQ(nearest_word("--batch_size", options), "--batch-size");
  EXPECT_EQ(nearest_word("--Batchsize", options), "--batch-size");
  EXPECT_EQ(nearest_word("--rl", options), "--lr");
  EXPECT_EQ(nearest_word("resnet81", {"resnet18", "resnet34"}), "resnet18");
}

TEST(NearestWord, IsNoneWhereNothingIsNear) {
  EXPECT_EQ(nearest_word("--no-such-option", {"--lr", "--space", "--steps"}), "");
  EXPECT_EQ(nearest_word("ab", {"cd"}), "");
  EXPECT_EQ(nearest_word("x", {"y"}), "");
  EXPECT_EQ(nearest_word("", {"--lr"}), "");
  EXPECT_EQ(nearest_word("--", {"--lr"}), "");
  EXPECT_EQ(nearest_word("train", {}), "");
  EXPECT_EQ(nearest_word(std::string(1'000'000, 'a'), {std::string(1'000'000, 'a')}), "")
      << "nobody types that, and it would take long";
}

TEST(DidYouMean, IsAPartOfAMessage) {
  EXPECT_EQ(did_you_mean("trian", {"train", "plan"}), " (did you mean train?)");
  EXPECT_EQ(did_you_mean("nothing", {"train", "plan"}), "");
}

}  // namespace
}  // namespace tessera::suggestion_test

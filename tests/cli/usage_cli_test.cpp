// Help, names that mean the same, and what the program says of words that it does not know.

#include <gtest/gtest.h>

#include <string>

#include "tests/cli/program.h"

namespace {

void expect_words_refused(const std::string& arguments, const std::string& part) {
  const Outcome outcome = tessera(arguments);
  EXPECT_EQ(outcome.exit_code, 2) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << ": " << outcome.err;
}

TEST(Usage, HelpIsACommand) {
  const Outcome asked = tessera("help train");
  EXPECT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_EQ(asked.out, tessera("train --help").out);
  EXPECT_NE(asked.out.find("--json"), std::string::npos) << asked.out;
  EXPECT_EQ(tessera("help").out, tessera("--help").out);
  expect_words_refused("help trian",
                       "[trian] is not a command (did you mean train?); known: models");
}

TEST(Usage, SlipsGetASuggestion) {
  expect_words_refused("trian unet2d", "[trian] is not a command (did you mean train?)");
  expect_words_refused("nothing-like-it",
                       "[nothing-like-it] is not a command; known: models, verify");
  expect_words_refused("train unet2d --lerning-rate 0.1",
                       "[--lerning-rate] `tessera train` has no such option (did you mean "
                       "--learning-rate?");
  expect_words_refused("train --lerning-rate=0.1 unet2d", "did you mean --learning-rate?");
  expect_words_refused("predict unet2d --image synthetic", "did you mean --images?");
  expect_words_refused("plan unet2d --no-such-option",
                       "[--no-such-option] `tessera plan` has no such");
  expect_words_refused("plan unet2d:bass=3", "has no option 'bass' (did you mean base?)");
  expect_words_refused("plan unet2d --loss dicee",
                       "'dicee' is not a known loss (did you mean dice?)");
  expect_words_refused("plan unet2d --pipeline-schedule gpip", "did you mean gpipe?");
}

TEST(Usage, NamesOfPyTorchAreTheSameOptions) {
  const std::string job = "plan unet2d:base=2,depth=2 --json ";
  EXPECT_EQ(tessera(job + "--input 6x3x32x32").out,
            tessera(job + "--input 1x3x32x32 --batch-size 6").out)
      << "the batch replaces that of the input";
  const std::string verify = "verify cnn2d:base=2,depth=1 --input 1x3x8x8 --json ";
  const Outcome named = tessera(verify + "--optimiser adamw --learning-rate 0.3");
  ASSERT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(tessera(verify + "--optimizer adamw --lr 0.3").out, named.out);
  expect_words_refused("train unet2d --data synthetic --lr 0.1 --learning-rate 0.1", "");
  const std::string help = tessera("train --help").out;
  for (const char* names : {"--learning-rate,--lr", "--batch,--batch-size", "--weight-decay,--wd",
                            "--optimiser,--optimizer", "--epochs,--num-epochs"})
    EXPECT_NE(help.find(names), std::string::npos) << names;
}

}  // namespace

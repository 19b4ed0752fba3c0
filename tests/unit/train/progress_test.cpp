// What the user sees, with a clock that the test turns.

#include "tessera/train/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tessera::progress_test {
namespace {

class ProgressTest : public testing::Test {
 protected:
  ProgressOptions options(ProgressStyle style) {
    ProgressOptions options;
    options.style = style;
    options.total_steps = 400;
    options.num_epochs = 10;
    options.stream = &stream_;
    options.seconds = [this] { return now_; };
    options.columns = [this] { return columns_; };
    return options;
  }
  ProgressUpdate update(int64_t step) const {
    return {.epoch = 1 + step / 40,
            .step = step,
            .loss = 0.4321,
            .learning_rate = 0.01,
            .amount = 1'000'000};
  }
  std::string taken() {
    const std::string text = stream_.str();
    stream_.str("");
    return text;
  }
  /// What a terminal shows on the redrawn line.
  static std::string last_line(const std::string& text) {
    const size_t begin = text.rfind('\r') + 1;
    return text.substr(begin, text.find("\x1b[K", begin) - begin);
  }

  std::ostringstream stream_;
  double now_ = 100;
  int columns_ = 120;
};

TEST_F(ProgressTest, RedrawsOneLineOnATerminal) {
  Progress progress(options(ProgressStyle::kTerminal));
  for (int64_t step = 1; step <= 120; ++step) {
    now_ += 0.5;
    progress.show(update(step));
  }
  const std::string text = taken();
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(last_line(text),
            "epoch 4/10  step 120/400  [#########>....................]   30%  loss 0.4321  lr "
            "1.00e-02  2.0 Mpx/s  ETA 2:20");
  progress.finish();
  EXPECT_EQ(taken(), "\n");
  progress.finish();
  EXPECT_EQ(taken(), "");
}

TEST_F(ProgressTest, CountsImagesWhereThatIsAsked) {
  ProgressOptions in_images = options(ProgressStyle::kLines);
  in_images.unit = ProgressUnit::kImages;
  Progress progress(in_images);
  ProgressUpdate first = update(1);
  first.amount = 32;
  now_ += 2;
  progress.show(first);
  EXPECT_NE(taken().find("  16.0 images/s  "), std::string::npos);
}

TEST_F(ProgressTest, NeverWritesBeyondTheTerminal) {
  Progress progress(options(ProgressStyle::kTerminal));
  for (columns_ = 0; columns_ < 200; ++columns_) {
    now_ += 1;
    progress.show(update(columns_ + 1));
    EXPECT_LT(static_cast<int>(last_line(taken()).size()), std::max(columns_, 2));
  }
}

TEST_F(ProgressTest, DoesNotRedrawMoreOftenThanAnEyeCanSee) {
  Progress progress(options(ProgressStyle::kTerminal));
  progress.show(update(1));
  EXPECT_NE(taken(), "");
  now_ += 0.05;
  progress.show(update(2));
  EXPECT_EQ(taken(), "");
  now_ += 0.06;
  progress.show(update(3));
  EXPECT_NE(taken().find("step 3/400"), std::string::npos);
}

TEST_F(ProgressTest, MessagesStandAboveTheRedrawnLine) {
  Progress progress(options(ProgressStyle::kTerminal));
  progress.say("first");
  EXPECT_EQ(taken(), "first\n");
  progress.show(update(1));
  taken();
  progress.say("checkpoint written");
  EXPECT_EQ(taken(), "\r\x1b[Kcheckpoint written\n");
  progress.finish();
  EXPECT_EQ(taken(), "") << "no line was open";
}

TEST_F(ProgressTest, PlainLinesElsewhere) {
  Progress progress(options(ProgressStyle::kLines));
  std::vector<std::string> lines;
  for (int64_t step = 1; step <= 400; ++step) {
    now_ += 0.25;
    progress.show(update(step));
    if (const std::string text = taken(); !text.empty()) lines.push_back(text);
  }
  // The first, one every 10 s (40 steps), and the last.
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(lines[0], "epoch 1/10  step 1/400  loss 0.4321  lr 1.00e-02  4.0 Mpx/s  ETA 1:40\n");
  EXPECT_EQ(lines[1].substr(0, 24), "epoch 2/10  step 41/400 ");
  EXPECT_NE(lines.back().find("step 400/400"), std::string::npos);
  EXPECT_NE(lines.back().find("ETA 0:00"), std::string::npos);
  progress.finish();
  EXPECT_EQ(taken(), "");
}

TEST_F(ProgressTest, OtherRanksAreSilent) {
  Progress progress(options(ProgressStyle::kSilent));
  progress.show(update(1));
  progress.say("hello");
  progress.finish();
  EXPECT_EQ(taken(), "");
  EXPECT_EQ(progress_style(1), ProgressStyle::kSilent);
  EXPECT_NE(progress_style(0), ProgressStyle::kSilent);
}

TEST_F(ProgressTest, AResumedRunCountsOnlyItsOwnSteps) {
  ProgressOptions resumed = options(ProgressStyle::kLines);
  resumed.first_step = 300;
  Progress progress(resumed);
  now_ += 2;
  progress.show(update(301));
  EXPECT_NE(taken().find("ETA 3:18"), std::string::npos) << "99 steps of 2 s";
}

TEST_F(ProgressTest, TheSlowFirstStepIsForgotten) {
  Progress progress(options(ProgressStyle::kLines));
  now_ += 60;
  progress.show(update(1));
  for (int64_t step = 2; step <= 100; ++step) {
    now_ += 1;
    taken();
    progress.show(update(step));
  }
  now_ += 10;
  taken();
  progress.show(update(101));
  EXPECT_NE(taken().find("ETA 6:23"), std::string::npos) << "31 steps of 1 s and one of 10";
}

TEST_F(ProgressTest, AClockThatStandsStillGivesNoNonsense) {
  Progress progress(options(ProgressStyle::kLines));
  progress.show(update(1));
  EXPECT_NE(taken().find("? px/s  ETA 0:00"), std::string::npos);
}

TEST(FormatDuration, GrowsWithTheTime) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(75), "1:15");
  EXPECT_EQ(format_duration(3675), "1:01:15");
  EXPECT_EQ(format_duration(86400 + 7384), "1d 02:03:04");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(1e300), "?");
}

}  // namespace
}  // namespace tessera::progress_test

// Plans for a thousand workers and more, in the memory of a laptop.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace scale_cli_test {
namespace {

/// Most bytes that a run of the program had resident; its output goes nowhere. LibTorch alone takes
/// about 160 MB of that where it is Debian's, and more elsewhere.
int64_t resident_bytes(const std::string& arguments) {
  const std::string command = std::string("exec ") + TESSERA_PROGRAM + " " + arguments;
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
  return usage.ru_maxrss * 1024;
}

constexpr int64_t kMega = 1'000'000;

/// Above what the program takes that plans for one worker.
int64_t bytes_for_many(const std::string& arguments) {
  return resident_bytes(arguments) - resident_bytes("plan unet2d --input 1x3x32x32 --json");
}

TEST(Scale, AThousandWorkersArePlannedInLittleMemory) {
  const std::string plan = "plan unet2d --input 1x3x16384x16384 --space 32x32 --json";
  EXPECT_LE(bytes_for_many(plan), 100 * kMega);  // 600 MB in all
  const Outcome outcome = tessera(plan);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json forecast = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(forecast.at("messages").size(), 1024u);
  const auto messages = forecast.at("messages").get<std::vector<int64_t>>();
  EXPECT_LE(*std::max_element(messages.begin(), messages.end()), 2500);
  // The interior has the same part of the image and neighbours on all sides as on 8x8.
  const Outcome small = tessera("plan unet2d --input 1x3x4096x4096 --space 8x8 --json");
  const nlohmann::json few = nlohmann::json::parse(small.out);
  EXPECT_EQ(forecast.at("peak_value_bytes").at(32 * 16 + 16),
            few.at("peak_value_bytes").at(8 * 4 + 4));
}

TEST(Scale, OneRankOfFourThousandIsLoweredByItself) {
  EXPECT_LE(bytes_for_many("plan unet2d --input 1x3x32768x32768 --space 64x64 --program --rank "
                           "2079"),
            200 * kMega);  // 400 MB in all
}

nlohmann::json bench(const std::string& job) {
  const Outcome outcome = tessera("bench " + job + " --threads 2 --warmup 1 --iterations 1 --json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
}

/// bench/memory has this for all models. Besides there are the threads' blocks of packed windows, a
/// copy of the input, and pages of LibTorch's code.
TEST(Scale, AStepHasInMemoryWhatIsAccountedFor) {
  const nlohmann::json empty = bench("cnn2d:base=1,depth=1 --input 1x1x8x8"),
                       step = bench("unet2d:base=16,depth=4 --input 1x3x512x512");
  ASSERT_TRUE(empty.is_object() && step.is_object());
  const auto of = [](const nlohmann::json& json, const char* key) {
    return json.at(key).at(0).get<int64_t>();
  };
  const int64_t accounted = of(step, "arena_bytes") + of(step, "parameter_bytes");
  EXPECT_GE(accounted, 150 * kMega);
  EXPECT_LE(of(step, "peak_rss_bytes") - of(empty, "peak_rss_bytes"),
            accounted + accounted * 8 / 100 + 50 * kMega);
}

TEST(Scale, TheTableShowsEachClassOnce) {
  const Outcome outcome = tessera("plan unet2d:base=2 --input 1x3x1024x1024 --space 16x16");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("on 256 workers"), std::string::npos);
  EXPECT_NE(outcome.out.find("196 like 17"), std::string::npos) << outcome.out;
  EXPECT_LT(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 40);
}

TEST(Scale, TimelinesAreForSmallWorlds) {
  const Outcome outcome =
      tessera("plan unet2d:base=2 --input 1x3x1024x1024 --space 64x32 --timeline");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("2048 workers are too many to draw; use at most 1024"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace scale_cli_test

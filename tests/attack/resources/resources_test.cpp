// The program without the resources that it would like to have, with numbers that nobody can mean,
// and stopped at any moment. Every run ends within a minute, with a documented exit code.
//
// TESSERA_ATTACK_CASES: command lines; a quarter as many starved and stopped runs (default: 24).
// TESSERA_ATTACK_SEED: the first case's; case i has the seed + i, so that one can be repeated
// alone.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "tests/attack/resources/attempt.h"
#include "tests/attack/resources/extreme_command.h"

namespace tessera::resources_test {
namespace {

using namespace tessera_attack;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

using Random = std::mt19937_64;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

uint64_t num_cases() { return from_environment("TESSERA_ATTACK_CASES", 24); }
uint64_t first_seed() { return from_environment("TESSERA_ATTACK_SEED", 20261116); }

/// A folder that everybody may write to, with a file that nobody has any business with.
class Arena {
 public:
  Arena() : folder_(testing::TempDir() + "tessera_resources_" + std::to_string(getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    chmod(folder_.c_str(), 0777);
    std::ofstream(folder_ + "/bystander") << kWords;
  }
  ~Arena() { fs::remove_all(folder_); }

  Ending make(const Attempt& attempt) const {
    const Ending ending = tessera_attack::make(attempt, folder_);
    for (const char* stream : {"/stdout", "/stderr"}) fs::remove(folder_ + stream);
    return ending;
  }
  bool is_bystander_unchanged() const {
    std::ifstream file(folder_ + "/bystander");
    return std::string(std::istreambuf_iterator<char>(file), {}) == kWords;
  }

 private:
  static constexpr const char* kWords = "nobody's business\n";
  std::string folder_;
};

bool is_loader(const Ending& ending) {
  return ending.exit_code == 127 &&
         ending.err.find("error while loading shared libraries") != std::string::npos;
}

std::string describe(uint64_t seed, const Attempt& attempt, const Ending& ending) {
  return "TESSERA_ATTACK_SEED=" + std::to_string(seed) + " TESSERA_ATTACK_CASES=1\n" +
         to_string(attempt) + "\nexit code " + std::to_string(ending.exit_code) + " after " +
         std::to_string(ending.seconds) + " s" + (ending.hung ? ", killed: it hung" : "") + "\n" +
         ending.err.substr(0, 600);
}

/// Makes the attempts and counts how they end.
void attack(const char* what, uint64_t cases, Attempt (*attempt_of)(Random&),
            bool (*is_legal)(const Attempt&, const Ending&)) {
  const Arena arena;
  std::map<int, int> codes;
  double longest = 0;
  for (uint64_t i = 0; i < cases; ++i) {
    const uint64_t seed = first_seed() + i;
    Random random(seed);
    const Attempt attempt = attempt_of(random);
    const Ending ending = arena.make(attempt);
    ++codes[ending.exit_code];
    longest = std::max(longest, ending.seconds);
    const bool says_why = ending.exit_code == 0 || !ending.err.empty() || ending.signalled;
    EXPECT_TRUE(!ending.hung && says_why && is_legal(attempt, ending))
        << describe(seed, attempt, ending);
    EXPECT_TRUE(arena.is_bystander_unchanged()) << describe(seed, attempt, ending);
  }
  std::printf("%s: %llu cases, longest %.1f s, exit codes", what,
              static_cast<unsigned long long>(cases), longest);
  for (const auto& [code, count] : codes) std::printf(" %d: %d", code, count);
  std::printf("\n");
}

/// Steps that have no end are legal; what plans and looks must end by itself.
Attempt command_line(Random& random) {
  Attempt attempt{.arguments = extreme_command(random)};
  const std::string& command = attempt.arguments.front();
  if (command == "verify" || command == "bench" || command == "train") {
    attempt.signal = SIGTERM;
    attempt.signal_after = 10s;
  }
  return attempt;
}

bool ends_well(const Attempt& attempt, const Ending& ending) {
  const int code = ending.exit_code;
  if (ending.signalled && code == 128 + *attempt.signal) return true;
  return code == 0 || code == 2 || code == 4;
}

Attempt starved(Random& random) {
  const auto between = [&](rlim_t low, rlim_t high) { return low + random() % (high - low + 1); };
  constexpr rlim_t kMega = 1 << 20;
  const Starvation kinds[] = {{RLIMIT_AS, between(300, 3000) * kMega, "as"},
                              {RLIMIT_AS, between(600, 1200) * kMega, "as"},
                              {RLIMIT_DATA, between(1, 1500) * kMega, "data"},
                              {RLIMIT_NPROC, between(1, 12), "nproc"},
                              {RLIMIT_NOFILE, between(3, 40), "nofile"},
                              {RLIMIT_STACK, between(1, 8) * kMega / 4, "stack"},
                              {RLIMIT_CPU, between(2, 3), "cpu"}};
  const std::string run = "run_" + std::to_string(random());
  const std::vector<std::string> commands[] = {
      {"models"},
      {"plan", "unet2d", "--space", "16x16", "--input", "1x3x1024x1024"},
      {"verify", "cnn2d", "--input", "2x3x32x32", "--space", "2x2"},
      {"bench", "unet2d:base=4", "--input", "1x3x64x64", "--space", "2x2", "--threads", "2"},
      {"bench", "cnn2d", "--input", "1x3x64x64", "--threads", "4"},
      {"train", "unet2d:base=4,classes=3", "--input", "2x3x64x64", "--data",
       "synthetic:samples=8,classes=3", "--steps", "3", "--run", run}};
  Attempt attempt;
  attempt.starvation = kinds[random() % std::size(kinds)];
  attempt.arguments = commands[random() % std::size(commands)];
  return attempt;
}

/// The loader is not ours: it says what is missing, and ends with 127.
bool ends_starved(const Attempt&, const Ending& ending) {
  const int code = ending.exit_code;
  return code == 0 || code == 2 || code == 4 || is_loader(ending);
}

Attempt stopped(Random& random) {
  const std::string run = "run_" + std::to_string(random());
  const std::vector<std::string> commands[] = {
      {"plan", "unet2d", "--space", "128x128", "--input", "1x3x8192x8192", "--json"},
      {"plan", "unet2d", "--pieces", "32x32", "--input", "1x3x1024x1024", "--json"},
      {"verify", "cnn2d", "--input", "2x3x64x64", "--space", "2x2", "--steps", "1000"},
      {"bench", "cnn2d", "--input", "1x3x64x64", "--space", "2x2", "--iterations", "1000000"},
      {"train", "unet2d:base=4,classes=3", "--input", "2x3x64x64", "--data",
       "synthetic:samples=8,classes=3", "--steps", "1000000", "--run", run},
      {"train", "unet2d:base=2,classes=3", "--input", "1x3x512x512", "--pieces", "16x16", "--data",
       "synthetic:samples=8,classes=3", "--steps", "1000000", "--run", run}};
  Attempt attempt;
  attempt.arguments = commands[random() % std::size(commands)];
  attempt.signal = random() % 2 == 0 ? SIGINT : SIGTERM;
  attempt.signal_after = std::chrono::milliseconds(random() % 4000);
  return attempt;
}

bool ends_stopped(const Attempt& attempt, const Ending& ending) {
  return ending.exit_code == 0 || ending.exit_code == 128 + *attempt.signal;
}

/// Each of these once crashed, hung or ran for minutes.
TEST(Resources, CountsThatNobodyCanMeanAreRefused) {
  const Arena arena;
  const std::vector<std::string> lines[] = {
      {"plan", "cnn2d:norm=none", "--input", "65536x3x32x32", "--micro-batches", "65536"},
      {"plan", "unet2d", "--input", "1x3x4096x4096", "--pieces", "4096x4096"},
      {"plan", "unet2d", "--input", "1x3x4096x4096", "--workers", "1000000"},
      {"bench", "cnn2d", "--input", "1x3x64x64", "--threads", "1024"},
      {"plan", "cnn2d", "--replicas", "65536", "--space", "4294967296x4294967296"}};
  for (const auto& line : lines) {
    const Attempt attempt{.arguments = line};
    const Ending ending = arena.make(attempt);
    EXPECT_TRUE(!ending.hung && ending.exit_code == 2) << describe(0, attempt, ending);
  }
}

TEST(Resources, CommandLinesOfExtremeNumbersEnd) {
  attack("command lines", num_cases(), command_line, ends_well);
}

TEST(Resources, ARunWithoutWhatItNeedsSaysSo) {
  attack("starved runs", (num_cases() + 3) / 4, starved, ends_starved);
}

TEST(Resources, AnyMomentIsGoodForCtrlC) {
  attack("stopped runs", (num_cases() + 3) / 4, stopped, ends_stopped);
}

}  // namespace
}  // namespace tessera::resources_test

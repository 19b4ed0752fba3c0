#include "tests/attack/launchers/attack.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace tessera {
namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

constexpr const char* kBystander = "nobody may change this\n";

int num_cases = 0;

class CaseCount : public testing::Environment {
  void TearDown() override { fmt::print("launchers: {} cases\n", num_cases); }
};
const auto* const case_count = testing::AddGlobalTestEnvironment(new CaseCount);

}  // namespace

AttackPlan::AttackPlan(int cases_by_default)
    : cases(static_cast<int>(number_from("TESSERA_ATTACK_CASES", cases_by_default))),
      seed(number_from("TESSERA_ATTACK_SEED", 1)) {}

void LauncherAttack::SetUp() {
  write_file(file("bystander"), kBystander);
  std::filesystem::create_directory(file("tmp"));
}

void LauncherAttack::TearDown() { EXPECT_EQ(read_file(file("bystander")), kBystander); }

Words LauncherAttack::verify(const Words& more) const {
  Words words{TESSERA_PROGRAM, "verify",  "cnn2d:base=2,depth=1,classes=2",
              "--input",       "1x1x8x8", "--space",
              "2x1",           "--steps", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words LauncherAttack::train(const std::string& run, int steps, const Words& more) const {
  Words words{TESSERA_PROGRAM,
              "train",
              "unet2d:base=2,depth=2,classes=2",
              "--input",
              "2x1x16x8",
              "--space",
              "2x1",
              "--data",
              "synthetic:samples=8,classes=2",
              "--steps",
              std::to_string(steps),
              "--checkpoint-interval",
              "5",
              "--run",
              file(run),
              "--save-weights",
              file(run + ".safetensors")};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

LauncherAttack::Outcome LauncherAttack::attack(const Words& words, const Words& variables) {
  count_case();
  Words all{"env", "TMPDIR=" + file("tmp")};
  all.insert(all.end(), variables.begin(), variables.end());
  all.insert(all.end(), words.begin(), words.end());
  Program program(all, file("log"));
  const auto exit_code = program.wait();
  EXPECT_TRUE(exit_code) << "it hangs: " << program.errors();
  const Outcome outcome{exit_code.value_or(-1), program.output(), program.errors()};
  EXPECT_LT(outcome.exit_code, 70) << outcome.errors;
  EXPECT_TRUE(outcome.exit_code == 0 || !outcome.errors.empty()) << "it ends without a word";
  if (exit_code) expect_nothing_left();
  return outcome;
}

void LauncherAttack::for_each_case(const AttackPlan& plan,
                                   const std::function<void(std::mt19937_64&)>& body) {
  for (int i = 0; i < plan.cases && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(
        fmt::format("repeat with TESSERA_ATTACK_CASES=1 TESSERA_ATTACK_SEED={}", plan.seed + i));
    std::mt19937_64 random(plan.seed + i);
    body(random);
  }
}

void LauncherAttack::count_case() { ++num_cases; }

void LauncherAttack::expect_nothing_left() {
  EXPECT_TRUE(await([] { return living_descendants().empty(); }, std::chrono::seconds(5)))
      << living_descendants().size() << " processes are left";
  for (const auto& entry : std::filesystem::directory_iterator(file("tmp")))
    EXPECT_FALSE(entry.path().filename().string().starts_with("tessera-ranks-")) << entry.path();
}

bool mpirun_is_there() {
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');)
    if (access((folder + "/mpirun").c_str(), X_OK) == 0) return true;
  return false;
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in:\n" << text;
}

}  // namespace tessera

// Links, pipes, folders and devices under the names of outputs and of temporary files, with bad
// streams and limits besides. Whatever lies there: the program ends with an ordinary code, every
// output is whole, old or new, and nothing else has changed.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tests/attack/writers/amount.h"
#include "tests/attack/writers/job.h"
#include "tests/attack/writers/planted.h"
#include "tests/attack/writers/snapshot.h"

namespace tessera::planted_test {
namespace {

namespace fs = std::filesystem;
using namespace attack;

template <class List>
const auto& one_of(const List& list, std::mt19937_64& random) {
  return list[random() % std::size(list)];
}

class Case {
 public:
  explicit Case(uint64_t seed) : random_(seed), job_(one_of(jobs(), random_)) {
    prepare_inputs(folder_.path());
    make_others(others());
    for (const Output& output : job_.outputs) fs::create_directories(parent(output.name));
    for (const Output& output : job_.outputs) plant_output(output);
    for (const Output& output : job_.outputs) plant_temporary(output);
    draw_surroundings();
  }

  void play() {
    // Before the case begins, since it runs the program, too.
    const std::map<std::string, std::string>& wanted = undisturbed(job_);
    SCOPED_TRACE(story_);
    const std::string bystander = describe_entry(others() + "/bystander");
    const Ending ending = run(job_.words, folder_.path(), surroundings_);
    expect_code(ending);
    EXPECT_EQ(describe_entry(others() + "/bystander"), bystander);
    EXPECT_EQ(describe_entry(others() + "/nowhere"), "nothing");
    for (const auto& [name, before] : laid_)
      EXPECT_EQ(describe_entry(folder_ / name), before) << name;
    for (const Output& output : job_.outputs) expect_whole(output, wanted, ending.exit_code);
    expect_no_leftovers(ending.exit_code);
  }

 private:
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  std::string others() const { return folder_ / "others"; }
  std::string parent(const std::string& name) const {
    return fs::path(folder_ / name).parent_path().string();
  }
  void tell(const std::string& text) { story_ += text + "\n"; }

  void plant_output(const Output& output) {
    const auto kind =
        chance(60) ? Planted::kNothing : static_cast<Planted>(random_() % kKindsOfPlanted);
    // Two outputs through two links to one file are another matter: they are refused.
    const bool taken = kind == Planted::kLinkToFile && !linked_.empty();
    planted_[output.name] = taken ? Planted::kFile : kind;
    if (planted_[output.name] == Planted::kLinkToFile) linked_ = output.name;
    plant(planted_[output.name], folder_ / output.name, others());
    tell(fmt::format("{}: {}", output.name, name_of(planted_[output.name])));
    if (!can_be_replaced(planted_[output.name])) {
      blocked_ = true;
      laid_[output.name] = describe_entry(folder_ / output.name);
    }
  }

  void plant_temporary(const Output& output) {
    const fs::path path(output.name);
    const std::string name = path.filename().string();
    const std::string digits = fmt::format("{:016x}", random_());
    const std::string names[] = {fmt::format(".{}.writing", name),
                                 fmt::format(".{}.{}.writing", name, digits),
                                 name + ".tmp",
                                 name + ".partial",
                                 name + ".unfinished",
                                 ".write_test"};
    for (const std::string& each : names) {
      const std::string temporary = (path.parent_path() / each).string();
      if (!chance(30) || fs::exists(fs::symlink_status(folder_ / temporary))) continue;
      auto kind = static_cast<Planted>(random_() % kKindsOfPlanted);
      // A plain file there may be a leftover of ours, which goes; see concurrent_test.
      if (kind == Planted::kFile) kind = Planted::kHardLink;
      plant(kind, folder_ / temporary, others());
      laid_[temporary] = describe_entry(folder_ / temporary);
      tell(fmt::format("{}: {}", temporary, name_of(kind)));
    }
  }

  void draw_surroundings() {
    constexpr Stream kStreams[] = {Stream::kClosed, Stream::kFull, Stream::kBrokenPipe};
    if (chance(25)) surroundings_.in = one_of(kStreams, random_);
    if (chance(25)) surroundings_.out = one_of(kStreams, random_);
    if (chance(25)) surroundings_.err = one_of(kStreams, random_);
    constexpr uint64_t kLimits[] = {0, 1, 100, 1000, 4000, 10'000};
    if (chance(25)) surroundings_.most_file_bytes = one_of(kLimits, random_);
    tell(fmt::format("streams {} {} {}, files up to {}", static_cast<int>(surroundings_.in),
                     static_cast<int>(surroundings_.out), static_cast<int>(surroundings_.err),
                     surroundings_.most_file_bytes
                         ? fmt::format("{} bytes", *surroundings_.most_file_bytes)
                         : "any size"));
    tell(fmt::format("{}", fmt::join(job_.words, " ")));
  }

  void expect_code(const Ending& ending) const {
    const bool lost = surroundings_.out == Stream::kFull;
    if (blocked_ || lost)
      EXPECT_EQ(ending.exit_code, 2) << ending.err;
    else if (!surroundings_.most_file_bytes)
      EXPECT_EQ(ending.exit_code, 0) << ending.err;
    else
      EXPECT_TRUE(ending.exit_code == 0 || ending.exit_code == 2) << ending.err;
    const bool can_speak = surroundings_.err == Stream::kOpen && !surroundings_.most_file_bytes;
    if (ending.exit_code == 2 && can_speak) {
      EXPECT_NE(ending.err.find("tessera: ["), std::string::npos) << ending.err;
    }
  }

  void expect_whole(const Output& output, const std::map<std::string, std::string>& wanted,
                    int exit_code) const {
    const Planted planted = planted_.at(output.name);
    if (!can_be_replaced(planted) || !output.repeatable) return;
    if (planted == Planted::kLinkToFile) {
      EXPECT_TRUE(fs::is_symlink(folder_ / output.name)) << "a link stays a link";
    }
    const std::string content = read_file(folder_ / output.name);
    const std::string old = planted == Planted::kNothing    ? ""
                            : planted == Planted::kHardLink ? "never to be changed"
                                                            : "old content";
    if (exit_code == 0)
      EXPECT_TRUE(content == wanted.at(output.name)) << output.name;
    else
      EXPECT_TRUE(content == old || content == wanted.at(output.name))
          << output.name << " is neither the old file nor the new one";
  }

  void expect_no_leftovers(int exit_code) const {
    for (const auto& [name, entry] : snapshot(folder_.path()))
      if (name.find("writing") != std::string::npos && !name.starts_with("others/") &&
          !laid_.contains(name) && !laid_.contains(fs::path(name).parent_path().string()))
        ADD_FAILURE() << name << " is left, with exit code " << exit_code;
  }

  std::mt19937_64 random_;
  const Job& job_;
  Folder folder_;
  Surroundings surroundings_;
  std::map<std::string, Planted> planted_;   // by the output's name
  std::map<std::string, std::string> laid_;  // what must stay as it is
  std::string linked_;
  bool blocked_ = false;
  std::string story_;
};

TEST(Writers, LeaveWhatOthersHaveLaidThereAlone) {
  for_each_case(8, [](uint64_t seed) { Case(seed).play(); });
}

}  // namespace
}  // namespace tessera::planted_test

// A machine that does not give what a launcher needs: a folder for temporary files, descriptors.

#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include "tests/attack/launchers/attack.h"

namespace tessera::resources_test {
namespace {

class ScarceResources : public LauncherAttack {};

TEST_F(ScarceResources, AFolderForTemporaryFilesThatCannotBeUsedIsNamed) {
  const std::string no_folder[] = {"/there/is/none", file("bystander"), "/proc",
                                   file(std::string(300, 'x')), file("a\nb")};
  for (const std::string& folder : no_folder) {
    const Outcome outcome = attack(verify(), {"TMPDIR=" + folder});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
    expect_part(outcome.errors, "set TMPDIR to a folder that can be written");
  }
}

TEST_F(ScarceResources, AFullFolderForTemporaryFilesIsNamed) {
  std::filesystem::create_directory(file("full"));
  if (mount("none", file("full").c_str(), "tmpfs", 0, "size=8k") != 0)
    GTEST_SKIP() << "only root can make a full file system";
  const Outcome outcome = attack(verify(), {"TMPDIR=" + file("full")});
  umount(file("full").c_str());
  EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
  expect_part(outcome.errors, "No space left on device");
}

TEST_F(ScarceResources, TooFewDescriptorsAreSaid) {
  const AttackPlan plan(3);
  for_each_case(plan, [&](std::mt19937_64& random) {
    const int allowed = 12 + static_cast<int>(random() % 28);
    Words words{"bash", "-c", fmt::format("ulimit -n {}; exec \"$@\"", allowed), "bash"};
    const Words program = verify();
    words.insert(words.end(), program.begin(), program.end());
    const Outcome outcome = attack(words);
    EXPECT_EQ(outcome.exit_code, 4) << allowed << ": " << outcome.errors;
    expect_part(outcome.errors, fmt::format("[launch] {} open files are allowed", allowed));
  });
}

}  // namespace
}  // namespace tessera::resources_test

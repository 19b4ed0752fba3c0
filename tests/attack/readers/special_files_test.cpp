// What is not a regular file, or not to be read, for every option that reads one: the program says
// so at once, with exit code 2 and the path, and the thing is what it was.

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "tests/attack/mutation.h"
#include "tests/cli/program.h"
#include "tests/unit/make_socket.h"

namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = "unet2d:base=2,depth=2 --input 1x3x16x16";

struct Kind {
  std::string name;
  std::function<void(const std::string& path)> make;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all{
      {"pipe", [](const std::string& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }},
      {"device", [](const std::string& path) { fs::create_symlink("/dev/zero", path); }},
      {"terminal", [](const std::string& path) { fs::create_symlink("/dev/tty", path); }},
      {"folder", [](const std::string& path) { fs::create_directory(path); }},
      {"socket", special::make_socket},
      {"loop", [](const std::string& path) { fs::create_symlink(path, path); }},
      {"link to nothing", [](const std::string& path) { fs::create_symlink("nothing", path); }}};
  if (::geteuid() != 0)
    all.push_back({"unreadable", [](const std::string& path) {
                     std::ofstream(path) << "{}";
                     ::chmod(path.c_str(), 0);
                   }});
  return all;
}

/// An option, and the command that uses it with a path.
struct Reader {
  std::string option;
  std::string command;  // with PATH in it
  std::string path;     // where the thing lies
};

class SpecialFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::mkdtemp(folder_.data()) == nullptr) FAIL() << "no temporary folder";
    const std::string run =
        "train " + std::string(kModel) + " --data synthetic:samples=4,classes=2";
    const std::string predict =
        "predict " + std::string(kModel) + " --output " + in_folder("o.npy");
    readers_ = {
        {"--plan", "plan " + std::string(kModel) + " --plan PATH", ""},
        {"--config", "plan --config PATH", ""},
        {"--balance", "plan " + std::string(kModel) + " --stages 2 --balance PATH", ""},
        {"MODEL", "inspect PATH --input 1x1x16x16", in_folder("net.pt")},
        {"inspect --plan",
         "inspect " + std::string(kModel) + " --plan PATH --svg " + in_folder("net.svg"), ""},
        {"--data, images",
         "train " + std::string(kModel) + " --data npy:PATH,t.npy --run " + in_folder("r1"), ""},
        {"--input-npy", "verify " + std::string(kModel) + " --input-npy PATH --target-npy PATH",
         ""},
        {"--weights", predict + " --images synthetic:samples=1 --weights PATH",
         in_folder("w.safetensors")},
        {"--weights, a checkpoint", predict + " --images synthetic:samples=1 --weights PATH", ""},
        {"--images", predict + " --images npy:PATH,PATH --weights w.safetensors", ""},
        {"--init-weights", run + " --steps 1 --init-weights PATH --run " + in_folder("r2"), ""},
        {"--resume", run + " --steps 1 --resume PATH --run " + in_folder("r3"), ""},
        {"run.json", run + " --steps 2 --run " + in_folder("run"), in_folder("run/run.json")},
        {"metrics.csv", run + " --steps 2 --run " + in_folder("run"),
         in_folder("run/metrics.csv")}};
    const Outcome trained = tessera(run + " --steps 1 --run " + in_folder("run"));
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }

  void TearDown() override { fs::remove_all(folder_); }

  void attack_with(const Reader& reader, const Kind& kind) {
    SCOPED_TRACE(reader.option + " with a " + kind.name);
    const std::string path = reader.path.empty() ? in_folder("thing") : reader.path;
    const bool had_file = fs::exists(path);
    if (had_file) fs::rename(path, path + ".kept");
    kind.make(path);
    const fs::file_type before = fs::symlink_status(path).type();
    std::string command = reader.command;
    for (size_t at; (at = command.find("PATH")) != std::string::npos;) command.replace(at, 4, path);
    const Outcome outcome = tessera(command);
    EXPECT_EQ(outcome.exit_code, 2) << command << "\n" << outcome.err;
    EXPECT_TRUE(outcome.err.find(path) != std::string::npos) << outcome.err;
    EXPECT_EQ(fs::symlink_status(path).type(), before) << "it was replaced";
    fs::remove_all(path);
    if (had_file) fs::rename(path + ".kept", path);
  }

  std::string in_folder(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_ = testing::TempDir() + "tessera-special-XXXXXX";
  std::vector<Reader> readers_;
};

TEST_F(SpecialFiles, AreRefusedAtOnceByName) {
  const std::vector<Kind> all_kinds = kinds();
  // Each option with a pipe and each kind with the first option come first, then the rest.
  std::vector<std::pair<size_t, size_t>> cases;
  for (const bool is_first : {true, false})
    for (size_t reader = 0; reader < readers_.size(); ++reader)
      for (size_t kind = 0; kind < all_kinds.size(); ++kind)
        if ((reader == 0 || kind == 0) == is_first) cases.emplace_back(reader, kind);
  const size_t default_cases = readers_.size() + all_kinds.size() - 1;
  std::vector<uint64_t> seeds = attack::attack_seeds(default_cases);
  seeds.resize(std::min(seeds.size(), cases.size()));
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(attack::repeat_with(seed));
    const auto& [reader, kind] = cases[(seed - 1) % cases.size()];
    attack_with(readers_[reader], all_kinds[kind]);
  }
  std::printf("%zu of %zu special files\n", seeds.size(), cases.size());
}

}  // namespace

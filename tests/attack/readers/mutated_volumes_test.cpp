// Volumes and maps after mutations: each is read, or refused by its name as the user's mistake and
// not as ours, and left as it was. Libraries may crash on them, in processes of their own; how
// often they do is printed.

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <map>

#include "tessera/images/open_array.h"
#include "tests/attack/mutation.h"
#include "tests/attack/readers/volume_files.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::mutated_volumes_test {
namespace {

using attack::Mutation;

constexpr uint64_t kCasesPerFormat = 1000;
constexpr int64_t kMostBytesRead = 64 << 20;

struct Volume {
  std::string format;
  std::string path;
  std::vector<std::string> valid;
};

/// Reads the whole array, or a corner where the file claims to be large.
void read_all(const std::string& path) {
  const auto file = open_array(path);
  Box box = Box::whole(file->shape());
  for (int axis = 0; axis < box.num_axes(); ++axis)
    while (box.volume() * bytes_of(file->type()) > kMostBytesRead && box[axis].size() > 1)
      box[axis].end -= box[axis].size() / 2;
  std::vector<char> bytes(static_cast<size_t>(box.volume() * bytes_of(file->type())));
  file->read(box, bytes.data());
}

/// What is wrong with how the file was refused; empty where it was read or refused properly.
std::string complaint(const Volume& volume, const std::string& bytes, int* num_crashes) {
  try {
    read_all(volume.path);
    return "";
  } catch (const InternalError& error) {
    return fmt::format("an internal error: {}", error.what());
  } catch (const Error& error) {
    const std::string message = error.what();
    if (has(message, "its reader crashed")) ++*num_crashes;
    if (!has(message, volume.path.substr(volume.path.rfind('/') + 1)))
      return fmt::format("a message without the file's name: {}", message);
    if (read_bytes(volume.path) != bytes) return "a refused file that was changed";
    return "";
  } catch (const std::exception& error) {
    return fmt::format("an exception that is not Tessera's: {}", error.what());
  }
}

/// Which case hangs is said from the handler of its alarm.
char hanging_case[160];
void say_which_hangs(int) {
  const ssize_t ignored = ::write(STDERR_FILENO, hanging_case, std::strlen(hanging_case));
  ::_exit(ignored >= 0 ? 1 : 2);
}

class MutatedVolumes : public ::testing::Test {
 protected:
  MutatedVolumes() {
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    ::setenv("TESSERA_CACHE_LIMIT", "1MB", 1);
    for (const auto& [format, files] : make_volume_files(folder_ / "made")) {
      Volume volume{format, folder_ / ("mutated" + format), {}};
      for (const std::string& file : files) volume.valid.push_back(read_bytes(file));
      volumes_.push_back(std::move(volume));
    }
  }
  ~MutatedVolumes() override {
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("TESSERA_CACHE_LIMIT");
  }

  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
  std::vector<Volume> volumes_;
};

TEST_F(MutatedVolumes, WhatIsValidIsRead) {
  for (const Volume& volume : volumes_)
    for (const std::string& valid : volume.valid) {
      SCOPED_TRACE(volume.format);
      write_bytes(volume.path, valid);
      EXPECT_NO_THROW(read_all(volume.path));
    }
}

TEST_F(MutatedVolumes, AreReadOrRefusedByName) {
  std::signal(SIGALRM, say_which_hangs);
  std::map<std::string, int> crashes;
  const std::vector<uint64_t> seeds = attack::attack_seeds(kCasesPerFormat * volumes_.size());
  for (const uint64_t seed : seeds) {
    const Volume& volume = volumes_[seed % volumes_.size()];
    Mutation mutation(seed);
    const std::string bytes = mutation.of(mutation.one_of(volume.valid));
    write_bytes(volume.path, bytes);
    std::memset(hanging_case, 0, sizeof(hanging_case));
    fmt::format_to_n(hanging_case, sizeof(hanging_case) - 1, "{}: hangs, {}\n", volume.format,
                     attack::repeat_with(seed));
    ::alarm(60);
    const std::string wrong = complaint(volume, bytes, &crashes[volume.format]);
    ::alarm(0);
    EXPECT_EQ(wrong, "") << volume.format << ": " << attack::repeat_with(seed);
  }
  for (const auto& [format, count] : crashes)
    fmt::print("{}: {} of about {} files crashed the library\n", format, count,
               seeds.size() / volumes_.size());
}

}  // namespace
}  // namespace tessera::mutated_volumes_test

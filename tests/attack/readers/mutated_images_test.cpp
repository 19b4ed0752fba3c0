// Image files after mutations: each is read, or refused by its name as the user's mistake and not
// as ours, and left as it was. What is read does not depend on the box that it is read by.
// Libraries that run in processes of their own may crash on them; how often they do is printed.
// TESSERA_ATTACK_KINDS="dcm,TIFF fax 4" takes these kinds only, by the names that are printed.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>

#include "tessera/base/text.h"
#include "tessera/images/open_array.h"
#include "tests/attack/mutation.h"
#include "tests/attack/readers/valid_images.h"
#include "tests/attack/readers/volume_files.h"
#include "tests/unit/images/array_boxes.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::mutated_images_test {
namespace {

using attack::Mutation;

constexpr uint64_t kCasesPerKind = 1000;
constexpr int64_t kMostBytesRead = 64 << 20;
// A reader in a process of its own may be asked twice, and is stopped by itself after 120 seconds.
constexpr unsigned kSecondsPerCase = 180;

/// Files of a format, or of a part of it that deserves as many cases.
struct Kind {
  std::string name;
  std::string path;
  std::vector<std::string> valid;
  ArrayOptions options = {};
};

struct Counts {
  int cases = 0, read = 0, crashes = 0;
};

/// The whole array, or a corner where the file claims to be large.
Box readable_box(const ArrayFile& file) {
  Box box = Box::whole(file.shape());
  for (int axis = 0; axis < box.num_axes(); ++axis)
    while (box.volume() * bytes_of(file.type()) > kMostBytesRead && box[axis].size() > 1)
      box[axis].end -= box[axis].size() / 2;
  return box;
}

/// What is wrong with what was read; empty where nothing is.
std::string read_all(const Kind& kind, uint64_t seed) {
  const auto file = open_array(kind.path, kind.options);
  const Box box = readable_box(*file);
  const std::string whole = read_box(*file, box);
  std::mt19937_64 random(seed);
  const Box part = random_box(random, box.shape());
  const std::string again = read_box(*open_array(kind.path, kind.options), part);
  const bool same = again == cut(whole, box.shape(), part, bytes_of(file->type()));
  return same ? "" : fmt::format("{} reads otherwise by itself", to_string(part));
}

/// What is wrong with how the file was read or refused; empty where nothing is.
std::string complaint(const Kind& kind, const std::string& bytes, uint64_t seed, Counts* counts) {
  ++counts->cases;
  try {
    const std::string wrong = read_all(kind, seed);
    ++counts->read;
    return wrong;
  } catch (const InternalError& error) {
    return fmt::format("an internal error: {}", error.what());
  } catch (const Error& error) {
    const std::string message = error.what();
    if (has(message, "its reader crashed")) ++counts->crashes;
    if (!has(message, kind.path.substr(kind.path.rfind('/') + 1)))
      return fmt::format("a message without the file's name: {}", message);
    if (read_bytes(kind.path) != bytes) return "a refused file that was changed";
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

class MutatedImages : public ::testing::Test {
 protected:
  MutatedImages() {
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    ::setenv("TESSERA_CACHE_LIMIT", "1MB", 1);
    const std::string scratch = folder_ / "made.tif";
    for (const auto& [name, bytes] : attack::valid_tiffs(scratch))
      add("TIFF " + name, ".tif", {bytes});
    add("slide", ".svs", attack::valid_slides(scratch));
    add("PNG", ".png", attack::valid_pngs());
    add("JPEG", ".jpg", attack::valid_jpegs());
    for (const auto& [ending, files] : make_volume_files(folder_ / "made")) {
      std::vector<std::string> valid;
      for (const std::string& file : files) valid.push_back(read_bytes(file));
      add(ending.substr(1), ending, valid);
    }
    kinds_.push_back({"raw",
                      folder_ / "mutated.raw",
                      {std::string(120, '\3')},
                      {.raw_shape = {3, 4, 5}, .raw_type = PixelType::kInt16}});
    if (const char* const names = std::getenv("TESSERA_ATTACK_KINDS")) {
      const std::vector<std::string> wanted = split_text(names, ',');
      std::erase_if(kinds_, [&](const Kind& kind) {
        return std::ranges::find(wanted, kind.name) == wanted.end();
      });
      if (kinds_.empty()) throw std::runtime_error("TESSERA_ATTACK_KINDS names no kind");
    }
  }
  ~MutatedImages() override {
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("TESSERA_CACHE_LIMIT");
  }

  void add(const std::string& name, const std::string& ending, std::vector<std::string> valid) {
    if (!valid.empty()) kinds_.push_back({name, folder_ / ("mutated" + ending), std::move(valid)});
  }

  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
  std::vector<Kind> kinds_;
};

TEST_F(MutatedImages, WhatIsValidIsRead) {
  for (const Kind& kind : kinds_)
    for (const std::string& valid : kind.valid) {
      SCOPED_TRACE(kind.name);
      write_bytes(kind.path, valid);
      EXPECT_NO_THROW(EXPECT_EQ(read_all(kind, 1), ""));
    }
}

TEST_F(MutatedImages, AreReadOrRefusedByName) {
  std::signal(SIGALRM, say_which_hangs);
  std::map<std::string, Counts> counts;
  for (const uint64_t seed : attack::attack_seeds(kCasesPerKind * kinds_.size())) {
    const Kind& kind = kinds_[seed % kinds_.size()];
    Mutation mutation(seed);
    const std::string& valid = mutation.one_of(kind.valid);
    const std::string bytes =
        mutation.below(2) == 0 ? mutation.of(valid) : mutation.in_place(valid);
    write_bytes(kind.path, bytes);
    std::memset(hanging_case, 0, sizeof(hanging_case));
    fmt::format_to_n(hanging_case, sizeof(hanging_case) - 1, "{}: hangs, {}\n", kind.name,
                     attack::repeat_with(seed));
    ::alarm(kSecondsPerCase);
    const std::string wrong = complaint(kind, bytes, seed, &counts[kind.name]);
    ::alarm(0);
    EXPECT_EQ(wrong, "") << kind.name << ": " << attack::repeat_with(seed);
  }
  for (const auto& [kind, count] : counts)
    fmt::print("{}: {} cases, {} read, {} crashed the library in its process\n", kind, count.cases,
               count.read, count.crashes);
}

}  // namespace
}  // namespace tessera::mutated_images_test

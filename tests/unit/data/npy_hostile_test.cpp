// Files that are not what they claim: each is refused with words that say what is wrong, and none
// makes the reader read beyond the file.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/data/array_reader.h"
#include "tests/unit/data/npy_bytes.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::npy_hostile_test {
namespace {

std::string dictionary(const std::string& descr, const std::string& order,
                       const std::string& shape) {
  return fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}\n", descr, order, shape);
}

std::string file_with(const std::string& text) { return npy_bytes(text, std::string(16, '\1')); }

struct Hostile {
  std::string name;
  std::string bytes;
  std::string complaint;
};

const std::string kGood = npy_bytes(dictionary("'<f4'", "False", "(4,)"), std::string(16, '\1'));

std::vector<Hostile> hostile_files() {
  std::string version = kGood, minor = kGood, magic = kGood, long_header = kGood;
  version[6] = 3;
  minor[7] = 1;
  magic[1] = 'X';
  long_header[9] = '\x7f';
  std::string huge = npy_bytes(dictionary("'<f4'", "False", "(4,)"), std::string(16, '\1'), 2);
  for (int i = 8; i < 12; ++i) huge[i] = '\xff';
  return {
      {"nothing", "", "0 bytes are too few"},
      {"one byte", "\x93", "too few"},
      {"magic only", kGood.substr(0, 6), "too few"},
      {"text", "hello, this is not an array at all", "not a .npy file"},
      {"wrong magic", magic, "not a .npy file"},
      {"version 3", version, "version 3.0"},
      {"version 1.1", minor, "version 1.1"},
      {"length cut", npy_bytes("", "", 2).substr(0, 10), "truncated"},
      {"header cut", kGood.substr(0, 30), "truncated or corrupt"},
      {"header beyond the file", long_header, "truncated or corrupt"},
      {"header of 4 GiB", huge, "truncated or corrupt"},
      {"data cut", kGood.substr(0, kGood.size() - 1), "needs 16 bytes of data, the file has 15"},
      {"no data", kGood.substr(0, kGood.size() - 16), "the file has 0; it is truncated"},
      {"too much data", kGood + "x", "the file has 17"},
      {"objects", file_with(dictionary("'|O'", "False", "(2,)")), "Python objects"},
      {"complex", file_with(dictionary("'<c16'", "False", "(1,)")), "'<c16' is not supported"},
      {"quarter", file_with(dictionary("'<f1'", "False", "(16,)")), "'<f1' is not supported"},
      {"text type", file_with(dictionary("'<U4'", "False", "(1,)")), "not supported"},
      {"empty type", file_with(dictionary("''", "False", "(1,)")), "not supported"},
      {"records", file_with(dictionary("[('a', '<f4')]", "False", "(4,)")), "structured"},
      {"negative size", file_with(dictionary("'<f4'", "False", "(-4,)")), "negative"},
      {"two negative sizes", file_with(dictionary("'<f4'", "False", "(-2, -2)")), "negative"},
      {"overflow", file_with(dictionary("'<f4'", "False", "(4294967296, 4294967297)")), "64 bits"},
      {"overflow to 16 bytes",  // 2^62 * 4 bytes + 16 wraps to 16
       file_with(dictionary("'<f4'", "False", "(4611686018427387908,)")), "64 bits"},
      {"size beyond 64 bits", file_with(dictionary("'<f4'", "False", "(99999999999999999999,)")),
       "beyond 64 bits"},
      {"real size", file_with(dictionary("'<f4'", "False", "(4.0,)")), "malformed"},
      {"shape is a number", file_with(dictionary("'<f4'", "False", "4")), "'(' should be here"},
      {"shape does not end", file_with(dictionary("'<f4'", "False", "(4,")), "malformed"},
      {"seven axes", file_with(dictionary("'<f4'", "False", "(1,1,1,1,1,1,4)")), "7 axes"},
      {"order is a number", file_with(dictionary("'<f4'", "0", "(4,)")), "True or False"},
      {"no shape", file_with("{'descr': '<f4', 'fortran_order': False}"), "'shape' is missing"},
      {"no type", file_with("{'fortran_order': False, 'shape': (4,)}"), "'descr' is missing"},
      {"shape twice", file_with("{'shape': (4,), 'shape': (4,)}"), "twice"},
      {"unknown key", file_with("{'evil': 1, 'shape': (4,)}"), "'evil' is unknown"},
      {"no braces", file_with("'descr': '<f4'"), "'{' should be here"},
      {"empty header", npy_bytes("", std::string(16, '\1')), "'{' should be here"},
      {"text after", file_with(dictionary("'<f4'", "False", "(4,)") + "import os"), "after the"},
      {"open quote", file_with("{'descr"), "does not end"},
      {"zeros", npy_bytes(std::string(60, '\0'), std::string(16, '\1')), "malformed"},
  };
}

TEST(NpyHostile, EachFileIsRefusedWithItsReason) {
  const ScratchFolder folder;
  for (const Hostile& hostile : hostile_files()) {
    SCOPED_TRACE(hostile.name);
    write_bytes(folder.file("bad.npy"), hostile.bytes);
    const std::string message =
        message_of<InvalidInput>([&] { ArrayReader array(folder.file("bad.npy")); });
    EXPECT_NE(message.find(hostile.complaint), std::string::npos) << message;
    EXPECT_NE(message.find("bad.npy"), std::string::npos) << message;
  }
  write_bytes(folder.file("good.npy"), kGood);
  EXPECT_NO_THROW(ArrayReader(folder.file("good.npy")));
}

TEST(NpyHostile, WhatIsNotAFile) {
  const ScratchFolder folder;
  EXPECT_NE(message_of<InvalidInput>([&] {
              ArrayReader array(folder.file("none.npy"));
            }).find("No such file"),
            std::string::npos);
  std::filesystem::create_directory(folder.file("folder.npy"));
  EXPECT_NE(message_of<InvalidInput>([&] {
              ArrayReader array(folder.file("folder.npy"));
            }).find("regular file"),
            std::string::npos);
  std::filesystem::create_symlink("/dev/null", folder.file("null.npy"));
  EXPECT_THROW(ArrayReader(folder.file("null.npy")), InvalidInput);
  EXPECT_NE(message_of<InvalidInput>([&] { ArrayReader array("a.npz"); }).find("known: .npy"),
            std::string::npos);
}

TEST(NpyHostile, AFileThatShrinksWhileItIsRead) {
  const ScratchFolder folder;
  const std::string path = folder.file("a.npy");
  write_bytes(path, npy_of<float>("<f4", "(100, 50)", std::vector<float>(5000, 1)));
  const ArrayReader array(path);
  std::filesystem::resize_file(path, 10'000);
  at::Tensor rows = at::empty({10, 50});
  EXPECT_NO_THROW(array.read(Box{{0, 10}, {0, 50}}, rows));
  const std::string message = message_of<InvalidInput>([&] {
    array.read(Box{{90, 100}, {0, 50}}, rows);
  });
  EXPECT_NE(message.find(path + " is shorter than it was"), std::string::npos) << message;
}

TEST(NpyHostile, RandomDamageIsRefusedOrHarmless) {
  const ScratchFolder folder;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    std::string bytes = kGood;
    for (int64_t i = random.between(1, 4); i > 0; --i)
      bytes[random.between(0, static_cast<int64_t>(bytes.size()) - 17)] =
          static_cast<char>(random.between(0, 255));
    if (random.between(0, 3) == 0)
      bytes.resize(static_cast<size_t>(random.between(0, static_cast<int64_t>(bytes.size()))));
    write_bytes(folder.file("bad.npy"), bytes);
    try {
      const ArrayReader array(folder.file("bad.npy"));
      array.read(Box::whole(array.shape()), at::empty(array.shape()));
    } catch (const InvalidInput&) {
    }
  }
}

}  // namespace
}  // namespace tessera::npy_hostile_test

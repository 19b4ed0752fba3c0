#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/checkpoint/safetensors.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::safetensors_fault_test {
namespace {

std::string with_length(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes.append(header).append(data);
}

// What is said of a file with these bytes; it must be refused, and by its name.
std::string fault_of(const std::string& bytes) {
  const ScratchFolder folder(ScratchFolder::Medium::kMemory);
  write_bytes(folder.file("w"), bytes);
  const std::string message = refusal([&] {
    const SafetensorsFile file(folder.file("w"));
    for (const TensorEntry& entry : file.entries()) file.tensor(entry.name);
  });
  EXPECT_TRUE(has(message, folder.file("w"))) << message;
  return message;
}

void expect_fault(const std::string& header, const std::string& fault, size_t data_bytes = 8) {
  const std::string message = fault_of(with_length(header, std::string(data_bytes, '\1')));
  EXPECT_TRUE(has(message, fault)) << header << "\n" << message;
}

std::string tensor(const std::string& type, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"({{"dtype":"{}","shape":{},"data_offsets":{}}})", type, shape, offsets);
}
std::string one(const std::string& type, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"({{"x":{}}})", tensor(type, shape, offsets));
}
std::string two(const std::string& a, const std::string& b) {
  return fmt::format(R"({{"a":{},"b":{}}})", tensor("U8", "[4]", a), tensor("U8", "[4]", b));
}

TEST(SafetensorsFault, InTheLength) {
  EXPECT_TRUE(has(fault_of(""), "0 bytes are too few"));
  EXPECT_TRUE(has(fault_of("1234567"), "7 bytes are too few"));
  EXPECT_TRUE(has(fault_of(std::string("\x09\0\0\0\0\0\0\0{}      ", 16)), "only 8 follow"));
  EXPECT_TRUE(has(fault_of(std::string(8, '\xff')), "not of this format"));
  EXPECT_TRUE(has(fault_of(std::string(16, '\0')), "does not begin with {"));
}

TEST(SafetensorsFault, InTheJson) {
  expect_fault("", "does not begin with {");
  expect_fault("[]", "does not begin with {");
  expect_fault(" {}", "does not begin with {");
  expect_fault("{", "not JSON");
  expect_fault("{\"x\":}", "not JSON");
  expect_fault("{} x", "not JSON");
  expect_fault("{\"\xff\":1}", "not JSON");
  expect_fault(fmt::format(R"({{"x":{})", std::string(100000, '[')), "nested too deeply");
  expect_fault(R"({"x":3})", "described by a number");
  expect_fault(R"({"__metadata__":[]})", "__metadata__ is array");
  expect_fault(R"({"__metadata__":{"k":1}})", "not a string");
}

TEST(SafetensorsFault, InNamesThatOccurTwice) {
  const std::string x = tensor("U8", "[4]", "[0,4]"), again = tensor("U8", "[4]", "[4,8]");
  expect_fault(fmt::format(R"({{"x":{},"x":{}}})", x, again), "occurs twice");
  expect_fault(R"({"__metadata__":{"k":"1","k":"2"}})", "occurs twice");
  expect_fault(R"({"x":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
               "occurs twice");
}

TEST(SafetensorsFault, InAnEntry) {
  expect_fault(R"({"x":{"shape":[8],"data_offsets":[0,8]}})", "no dtype");
  expect_fault(R"({"x":{"dtype":"U8","data_offsets":[0,8]}})", "no shape");
  expect_fault(R"({"x":{"dtype":"U8","shape":[8]}})", "no data_offsets");
  expect_fault(R"({"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"y":1}})", "more than");
  expect_fault(R"({"x":{"dtype":8,"shape":[8],"data_offsets":[0,8]}})", "dtype 8");
  expect_fault(one("F8_E4M3", "[8]", "[0,8]"), "F8_E4M3");
  expect_fault(one("f32", "[2]", "[0,8]"), "can be read: BOOL");
  expect_fault(one("U8", "8", "[0,8]"), "shape that is not a list");
  expect_fault(one("U8", "[-8]", "[0,8]"), "shape that is not a list");
  expect_fault(one("U8", "[8.0]", "[0,8]"), "shape that is not a list");
  expect_fault(one("U8", "[\"8\"]", "[0,8]"), "shape that is not a list");
  expect_fault(one("U8", "[8]", "[0,8,8]"), "3 data_offsets");
  expect_fault(one("U8", "[8]", "[0,1e400]"), "not JSON");
  expect_fault(one("U8", "[8]", "[0,8.0]"), "data_offsets that is not a list");
}

TEST(SafetensorsFault, InASize) {
  expect_fault(one("U8", "[7]", "[0,8]"), "has 8 bytes, but U8 of shape [7] are 7");
  expect_fault(one("F64", "[8]", "[0,8]"), "are 64");
  expect_fault(one("F32", "[0]", "[0,8]"), "are 0");
  expect_fault(one("U8", "[8]", "[8,0]"), "before its beginning");
  expect_fault(one("U8", "[4294967296,4294967296]", "[0,8]"), "more bytes than can be counted");
  expect_fault(one("U8", "[18446744073709551615]", "[0,8]"), "more bytes than can be counted");
  expect_fault(one("F64", "[2305843009213693952]", "[0,0]"), "more bytes than can be counted");
  expect_fault(one("U8", "[4294967296,4294967296,0]", "[0,0]"), "more bytes than can be counted");
  expect_fault(one("U8", "[0,4294967296,4294967296]", "[0,0]"), "more bytes than can be counted");
}

TEST(SafetensorsFault, InThePlaces) {
  expect_fault(two("[0,4]", "[4,8]"), "truncated", 7);
  expect_fault(two("[0,4]", "[4,8]"), "1 bytes follow", 9);
  expect_fault(two("[0,4]", "[3,7]"), "inside another", 7);
  expect_fault(two("[0,4]", "[0,4]"), "inside another", 4);
  expect_fault(two("[0,4]", "[5,9]"), "bytes 4 to 5 of the data belong to no tensor", 9);
  expect_fault(two("[1,5]", "[5,9]"), "bytes 0 to 1", 9);
  expect_fault(one("U8", "[8]", "[18446744073709551600,18446744073709551608]"), "truncated");
  expect_fault("{}", "8 bytes follow");
  expect_fault(one("U8", "[0]", "[9,9]"), "truncated");
  expect_fault(R"({"__metadata__":{}})", "1 bytes follow", 1);
}

TEST(SafetensorsFault, InABoolean) {
  EXPECT_TRUE(has(fault_of(with_length(one("BOOL", "[3]", "[0,3]"), std::string("\0\1\2", 3))),
                  "its byte 2 is 2"));
}

TEST(SafetensorsFault, EveryTruncationIsFound) {
  const ScratchFolder folder(ScratchFolder::Medium::kMemory);
  write_safetensors(folder.file("w"), {{"x", at::ones({3})}, {"y", at::ones({5}, at::kByte)}});
  const std::string bytes = read_bytes(folder.file("w"));
  for (size_t size = 0; size < bytes.size(); ++size) fault_of(bytes.substr(0, size));
  fault_of(bytes + '\0');
}

// A changed byte may give another legal file, but never a tensor outside of it.
TEST(SafetensorsFault, NoChangedByteBreaksTheReader) {
  const ScratchFolder folder(ScratchFolder::Medium::kMemory);
  write_safetensors(folder.file("w"), {{"x", at::ones({3})}, {"y", at::ones({5}, at::kByte)}});
  const std::string bytes = read_bytes(folder.file("w"));
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int change : {0x01, 0x10, 0x80}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      write_bytes(folder.file("v"), changed);
      try {
        const SafetensorsFile file(folder.file("v"));
        for (const TensorEntry& entry : file.entries())
          file.tensor(entry.name).to(at::kDouble).sum();
      } catch (const InvalidInput&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, 200);
}

TEST(SafetensorsFault, InTheFileItself) {
  const ScratchFolder folder(ScratchFolder::Medium::kMemory);
  const auto open = [&](const std::string& path) {
    return refusal([&] { SafetensorsFile file(path); });
  };
  EXPECT_TRUE(has(open(folder.file("none")), "No such file"));
  EXPECT_TRUE(has(open(folder.path()), "is a folder"));
  EXPECT_TRUE(has(open("/dev/zero"), "is a device"));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(has(open(folder.file("pipe")), "is a pipe"));
}

TEST(SafetensorsFault, InAFileThatShrinks) {
  const ScratchFolder folder(ScratchFolder::Medium::kMemory);
  write_safetensors(folder.file("w"), {{"x", at::ones({5000})}});
  const SafetensorsFile file(folder.file("w"));
  ASSERT_EQ(::truncate(folder.file("w").c_str(), 4000), 0);
  const std::string message = refusal([&] { file.tensor("x"); });
  EXPECT_TRUE(has(message, folder.file("w") + " is shorter than it was")) << message;
}

// Once each name was compared with all before it, which took a minute and a half.
TEST(SafetensorsFault, NotInManyTensors) {
  const ScratchFolder folder(ScratchFolder::Medium::kMemory);
  constexpr int kTensors = 60'000;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i)
    header += fmt::format(R"({}"layer{}":{})", i ? "," : "", i,
                          tensor("U8", "[1]", fmt::format("[{},{}]", i, i + 1)));
  write_bytes(folder.file("w"), with_length(header + "}", std::string(kTensors, 'x')));
  EXPECT_EQ(SafetensorsFile(folder.file("w")).entries().size(), size_t{kTensors});
}

}  // namespace
}  // namespace tessera::safetensors_fault_test

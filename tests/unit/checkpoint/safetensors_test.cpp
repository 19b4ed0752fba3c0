#include "tessera/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::safetensors_test {
namespace {

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  const ScratchFolder folder;
  const std::string path = folder.file("w.safetensors");
  const at::Tensor b = at::arange(1, 4, at::kByte);
  const at::Tensor a = at::tensor({1.0f, -2.0f});
  write_safetensors(path, {{"b", b}, {"a", a}}, {{"format", "pt"}});

  std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"data_offsets":[0,8],"dtype":"F32","shape":[2]},)"
      R"("b":{"data_offsets":[8,11],"dtype":"U8","shape":[3]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::string length{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  const std::string data("\x00\x00\x80\x3f\x00\x00\x00\xc0\x01\x02\x03", 11);
  EXPECT_EQ(read_bytes(path), length + header + data);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"w.safetensors"});
}

TEST(Safetensors, KeepsEveryTypeAndShape) {
  const ScratchFolder folder;
  const std::string path = folder.file("w");
  NamedTensors tensors;
  for (at::ScalarType type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong,
                              at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    const std::string name = c10::toString(type);
    tensors.emplace_back(name, at::randint(0, 2, {3, 1, 5}, at::kFloat).to(type));
    tensors.emplace_back(name + ".single", at::ones({}, type));
    tensors.emplace_back(name + ".none", at::ones({4, 0, 2}, type));
  }
  tensors.emplace_back("", at::arange(6, at::kDouble).view({2, 3}).t());
  tensors.emplace_back("näme \"\\\n", at::arange(20, at::kFloat).slice(0, 3, 19, 4));
  tensors.emplace_back("leaf", at::ones({2}).set_requires_grad(true));
  write_safetensors(path, tensors, {{"ключ", "значение\t\"x\""}, {"", ""}});

  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata(), (Metadata{{"ключ", "значение\t\"x\""}, {"", ""}}));
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (size_t i = 1; i < tensors.size(); ++i)
    EXPECT_LT(file.entries()[i - 1].name, file.entries()[i].name);
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor read = file.tensor(name);
    EXPECT_EQ(read.scalar_type(), tensor.scalar_type()) << name;
    EXPECT_EQ(read.sizes(), tensor.sizes()) << name;
    EXPECT_TRUE(read.equal(tensor.detach())) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data_ptr()) % read.element_size(), 0u) << name;
  }
  EXPECT_TRUE(has(refusal([&] { file.tensor("nobody"); }), "no tensor nobody"));
}

TEST(Safetensors, HoldsNothing) {
  const ScratchFolder folder;
  write_safetensors(folder.file("w"), {});
  const SafetensorsFile file(folder.file("w"));
  EXPECT_TRUE(file.entries().empty() && file.metadata().empty());
}

// Other writers order and pad as they like, and need not align.
TEST(Safetensors, ReadsWhatOthersWrite) {
  const ScratchFolder folder;
  const std::string header =
      "{ \"z\":{\"shape\":[1],\"dtype\":\"U8\",\"data_offsets\":[0,1]}, \"a\" : {\"dtype\":\"I32\","
      "\"shape\":[],\"data_offsets\":[1,5]} }   ";
  const std::string length{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  write_bytes(folder.file("w"), length + header + std::string("\x09\x04\x03\x02\x01", 5));
  const SafetensorsFile file(folder.file("w"));
  EXPECT_EQ(file.tensor("z").item<int>(), 9);
  EXPECT_EQ(file.tensor("a").item<int>(), 0x01020304);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.tensor("a").data_ptr()) % 4, 0u);
}

TEST(Safetensors, TensorsOutliveTheFile) {
  const ScratchFolder folder;
  const std::string path = folder.file("w");
  write_safetensors(path, {{"x", at::arange(5000, at::kLong)}});
  std::optional<SafetensorsFile> file(path);
  at::Tensor x = file->tensor("x");
  file.reset();
  write_safetensors(path, {{"y", at::zeros({2})}});
  EXPECT_TRUE(x.equal(at::arange(5000, at::kLong)));
  std::filesystem::remove(path);
  EXPECT_TRUE(x.equal(at::arange(5000, at::kLong)));
}

TEST(Safetensors, WritingToAReadTensorLeavesTheFile) {
  const ScratchFolder folder;
  const std::string path = folder.file("w");
  write_safetensors(path, {{"x", at::ones({8})}});
  const std::string before = read_bytes(path);
  SafetensorsFile(path).tensor("x").zero_();
  EXPECT_EQ(read_bytes(path), before);
  EXPECT_TRUE(SafetensorsFile(path).tensor("x").equal(at::ones({8})));
}

TEST(Safetensors, RefusesWhatTheFormatLacks) {
  const ScratchFolder folder;
  const std::string path = folder.file("w");
  const at::Tensor one = at::ones({1});
  const auto write = [&](const NamedTensors& tensors, const Metadata& metadata = {}) {
    return refusal([&] { write_safetensors(path, tensors, metadata); });
  };
  EXPECT_TRUE(has(write({{"x", one}, {"x", one}}), "x is given to two things"));
  EXPECT_TRUE(has(write({{"__metadata__", one}}), "__metadata__ is given to two"));
  EXPECT_TRUE(has(write({{"x", at::ones({1}, at::kComplexFloat)}}), "ComplexFloat"));
  EXPECT_TRUE(has(write({{"\xff\xfe", one}}), "UTF-8"));
  EXPECT_TRUE(has(write({{"x", one}}, {{"k", "\xc3"}}), path));
  EXPECT_TRUE(names_in(folder.path()).empty());
}

}  // namespace
}  // namespace tessera::safetensors_test

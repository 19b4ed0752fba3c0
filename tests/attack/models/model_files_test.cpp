// Model files with any damage: bytes of the file, or bytes of a record whose checksum is right.
// Each is imported or refused, and nothing else happens.

#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include "tessera/base/error.h"
#include "tessera/import/import.h"
#include "tests/attack/mutation.h"
#include "tests/unit/import/zip_writer.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::model_files_test {
namespace {

void save_net(const std::string& path) {
  torch::jit::Module net("net");
  net.register_parameter("weight", at::ones({4, 3, 3, 3}), /*is_buffer=*/false);
  net.register_buffer("mean", at::zeros({4}));
  net.define(R"(
def forward(self, x):
  y = torch.conv2d(x, self.weight, None, [1, 1], [1, 1])
  for i in range(2):
    y = torch.relu(y) + 1.5
  if y.size(2) > 3:
    y = torch.max_pool2d(y, [2, 2])
  return torch.cat([y, y], 1)
)");
  net.save(path);
}

std::vector<zip::Record> records_of(const std::string& path) {
  caffe2::serialize::PyTorchStreamReader reader(path);
  std::vector<zip::Record> records;
  for (const std::string& name : reader.getAllRecords()) {
    const auto [data, size] = reader.getRecord(name);
    records.push_back({"net/" + name, std::string(static_cast<const char*>(data.get()), size)});
  }
  return records;
}

TEST(ModelFiles, AreImportedOrRefused) {
  const ScratchFolder folder(ScratchFolder::Medium::kMemory);
  save_net(folder / "valid.pt");
  const std::string valid = read_bytes(folder / "valid.pt");
  const std::vector<zip::Record> records = records_of(folder / "valid.pt");
  const std::string path = folder / "model.pt";
  write_bytes(path, zip::archive(records));
  ASSERT_NO_THROW(import_torchscript(path, {1, 3, 16, 16})) << "written again, it is a good file";
  const auto seeds = attack::attack_seeds(120);
  int64_t imported = 0;
  for (uint64_t seed : seeds) {
    SCOPED_TRACE(attack::repeat_with(seed));
    attack::Mutation mutation(seed);
    if (mutation.below(3) == 0) {
      write_bytes(path, mutation.of(valid));
    } else {
      std::vector<zip::Record> changed = records;
      zip::Record& record = changed[mutation.below(changed.size())];
      record.data = mutation.of(record.data);
      write_bytes(path, zip::archive(changed));
    }
    try {
      import_torchscript(path, {1, 3, 16, 16});
      ++imported;
    } catch (const InternalError& error) {
      ADD_FAILURE() << error.what();
    } catch (const Error& error) {
      EXPECT_TRUE(has(error.what(), "model.pt")) << error.what();
    }
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"model.pt", "valid.pt"}));
    EXPECT_EQ(read_bytes(folder / "valid.pt"), valid);
  }
  std::printf("model files: %zu cases, %lld of them imported\n", seeds.size(),
              static_cast<long long>(imported));
}

}  // namespace
}  // namespace tessera::model_files_test

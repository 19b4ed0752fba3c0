#include "tests/unit/structure/include_graph.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::include_graph_test {
namespace {

TEST(Rooms, IncludeOnlyWhatTheArchitectureAllows) {
  const RoomPlan plan = parse_rooms(read_bytes(TESSERA_SOURCE "/docs/architecture.md"));
  EXPECT_GT(plan.order.size(), 20u);
  EXPECT_EQ(violations(TESSERA_SOURCE, plan), std::vector<std::string>());
}

TEST(Rooms, AreAllThere) {
  const RoomPlan plan = parse_rooms(read_bytes(TESSERA_SOURCE "/docs/architecture.md"));
  for (const std::string& room : plan.order)
    EXPECT_TRUE(std::filesystem::is_directory(TESSERA_SOURCE "/tessera/" + room)) << room;
}

TEST(Kernels, AreTheOnlyPlaceForLoopsOverNumbers) {
  EXPECT_EQ(device_code(TESSERA_SOURCE), std::vector<std::string>());
}

TEST(Kernels, ALoopInAnOperatorIsFound) {
  const ScratchFolder root;
  const auto write = [&](const std::string& path, const std::string& line) {
    const std::string file = root.file("tessera/" + path);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    write_bytes(file, line + "\n");
  };
  write("kernels/cpu/pool.cpp", "const float* x = tensor.data_ptr<float>();");
  write("kernels/cpu/conv.cpp", "const float first = tensor.item<float>();");
  write("kernels/aten/pool.cpp", "at::max_pool2d(x, kernel);");
  write("ops/pool/pool.cpp", "pool_maxima(piece, x, y, choices);");
  EXPECT_EQ(device_code(root.path()), std::vector<std::string>());
  write("ops/pool/raw.cpp", "const float* x = tensor.data_ptr<float>();");
  write("train/near.cpp", "#include \"tessera/kernels/cpu/rows.h\"");
  write("train/also.cpp", "#include \"tessera/kernels/aten/tensors.h\"");
  write("kernels/aten/near.cpp", "#include \"tessera/kernels/cpu/rows.h\"");
  write("kernels/aten/wait.cpp", "const float first = tensor.item<float>();");
  EXPECT_EQ(device_code(root.path()),
            (std::vector<std::string>{
                "tessera/kernels/aten/near.cpp: #include \"tessera/kernels/cpu/rows.h\"",
                "tessera/kernels/aten/wait.cpp: const float first = tensor.item<float>();",
                "tessera/ops/pool/raw.cpp: const float* x = tensor.data_ptr<float>();",
                "tessera/train/also.cpp: #include \"tessera/kernels/aten/tensors.h\"",
                "tessera/train/near.cpp: #include \"tessera/kernels/cpu/rows.h\""}));
}

/// A tree with one file for each pair of path and include.
std::vector<std::string> violations_of(
    const std::string& rooms, const std::vector<std::pair<std::string, std::string>>& files) {
  const ScratchFolder root;
  for (const auto& [path, include] : files) {
    const std::string file = root.file("tessera/" + path);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    write_bytes(file, "#pragma once\n#include " + include + "\n");
  }
  return violations(root.path(), parse_rooms("text\n```rooms\n" + rooms + "```\n"));
}

TEST(Rooms, AnEdgeThatIsNotAllowedIsFound) {
  const std::string rooms = "base!:\ngraph: base\nops: base graph\n";
  EXPECT_TRUE(violations_of(rooms, {{"graph/graph.h", "\"tessera/base/error.h\""},
                                    {"ops/conv/linear.cpp", "\"tessera/graph/graph.h\""},
                                    {"ops/conv/linear.h", "\"tessera/ops/pool/pool.h\""},
                                    {"ops/conv/linear.h", "<ATen/ATen.h>"}})
                  .empty());
  const auto only_violation = [&](const std::string& path, const std::string& include) {
    const std::vector<std::string> found = violations_of(rooms, {{path, include}});
    return found.size() == 1 ? found[0] : std::string();
  };
  EXPECT_EQ(only_violation("graph/graph.cpp", "\"tessera/ops/conv/linear.h\""),
            "tessera/graph/graph.cpp: graph may not include tessera/ops/conv/linear.h");
  EXPECT_EQ(only_violation("base/error.h", "<ATen/ATen.h>"),
            "tessera/base/error.h: base sees no torch, and includes ATen/ATen.h");
  EXPECT_EQ(only_violation("attic/old.h", "<vector>"),
            "tessera/attic/old.h: the room attic is not listed");
}

TEST(Rooms, StandInOrder) {
  expect_refusal([] { parse_rooms("```rooms\na: b\nb:\n```\n"); },
                 "which does not stand before it");
  expect_refusal([] { parse_rooms("nothing"); }, "has no such block");
}

}  // namespace
}  // namespace tessera::include_graph_test

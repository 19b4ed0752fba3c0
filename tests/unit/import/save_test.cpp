// A model file is written whole or not at all. LibTorch's own writer ends the process where the
// disk takes no more.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/csrc/jit/api/module.h>

#include <csignal>

#include "tessera/import/import.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::save_test {
namespace {

TEST(SaveTorchscript, AWriteThatStopsInTheMiddleIsAnErrorAndChangesNothing) {
  const ScratchFolder folder;
  torch::jit::Module net("net");
  net.register_parameter("weight", at::arange(100000, at::kFloat), /*is_buffer=*/false);
  net.define("def forward(self, x):\n  return x * self.weight\n");
  net.save(folder / "net.pt");
  write_bytes(folder / "trained.pt", "old");
  const std::string message = text_of_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return refusal(
        [&] { save_torchscript(folder / "net.pt", folder / "trained.pt", Graph(), {}, {}, 0); });
  });
  EXPECT_TRUE(has(message, "trained.pt: File too large")) << message;
  EXPECT_EQ(read_bytes(folder / "trained.pt"), "old");
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"net.pt", "trained.pt"}));
}

}  // namespace
}  // namespace tessera::save_test

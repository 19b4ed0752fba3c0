// What a build without NCCL says, in place of tests/gpu/comm/nccl_test.cpp.

#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.h"
#include "tessera/comm/nccl/nccl.h"
#include "tessera/comm/threads/threads.h"

namespace tessera::nccl_missing_test {
namespace {

TEST(NcclMissing, ThePackageIsNamed) {
  if (nccl::available()) GTEST_SKIP() << "this build has it";
  try {
    nccl::create(std::move(threads::create(1)[0]), 0);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("libnccl-dev"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tessera::nccl_missing_test

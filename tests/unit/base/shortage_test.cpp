// What the standard library and LibTorch throw where there is no more memory, and no more threads.

#include "tessera/base/shortage.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>

namespace tessera::shortage_test {
namespace {

TEST(Shortage, IsWhatTheStandardLibraryThrows) {
  EXPECT_TRUE(is_shortage(std::bad_alloc()));
  EXPECT_TRUE(is_shortage(std::bad_array_new_length()));
  EXPECT_TRUE(is_shortage(std::system_error(EAGAIN, std::generic_category())));
  EXPECT_TRUE(is_shortage(std::system_error(ENOMEM, std::generic_category())));
  EXPECT_FALSE(is_shortage(std::system_error(ENOENT, std::generic_category())));
  EXPECT_FALSE(is_shortage(std::runtime_error("out of memory")));
}

TEST(Shortage, IsWhatLibTorchThrows) {
  try {
    const c10::DataPtr data = at::getCPUAllocator()->allocate(size_t{1} << 60);
    FAIL() << "there is an exbibyte";
  } catch (const std::exception& error) {
    // Our own allocator, where it is installed, throws an OutOfMemory that needs no telling.
    const bool is_torch = dynamic_cast<const c10::Error*>(&error) != nullptr;
    EXPECT_EQ(is_shortage(error), is_torch) << error.what();
  }
}

}  // namespace
}  // namespace tessera::shortage_test

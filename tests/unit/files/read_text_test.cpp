#include "tessera/files/read_text.h"

#include <gtest/gtest.h>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::read_text_test {
namespace {

TEST(ReadText, GivesEveryByte) {
  const ScratchFolder folder;
  const std::string odd("a\r\n\0b\xff\n", 7);
  for (const std::string& text : {std::string(), odd, std::string(100'000, 'x')}) {
    write_bytes(folder / "f", text);
    EXPECT_EQ(read_text(folder / "f", "--plan"), text);
  }
}

TEST(ReadText, RefusesWhatIsLargerThanItsLimit) {
  const ScratchFolder folder;
  write_bytes(folder / "f", "12345");
  EXPECT_EQ(read_text(folder / "f", "--plan", 5), "12345");
  expect_refusal([&] { read_text(folder / "f", "--plan", 4); },
                 "[--plan] " + (folder / "f") + " has 5 bytes, more than the 4 that are read");
}

}  // namespace
}  // namespace tessera::read_text_test

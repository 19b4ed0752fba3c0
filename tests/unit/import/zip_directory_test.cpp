// A file is exactly one archive, or it is refused with what is wrong.

#include "tessera/import/zip_directory.h"

#include <gtest/gtest.h>

#include "tests/unit/import/zip_writer.h"
#include "tests/unit/refusal.h"

namespace tessera::zip_directory_test {
namespace {

using namespace zip;

const std::vector<Record> kTwo = {{"m/a", "first", 8, 0, 0, "", "xx"}, {"m/b", "second"}};

TEST(ZipDirectory, ListsRecordsWithWholeNames) {
  const std::string long_name = "m/" + std::string(40000, 'n') + ".py";
  const std::string file = archive({kTwo[0], kTwo[1], {long_name, "x = 1"}});
  const std::vector<ZipRecord> records = read_zip_directory(file);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].name, "m/a");
  EXPECT_EQ(records[0].size, 5);
  EXPECT_EQ(records[1].name, "m/b");
  EXPECT_EQ(records[2].name, long_name);
  EXPECT_EQ(file.substr(records[2].offset, 4), "PK\3\4");
}

TEST(ZipDirectory, NothingStandsBeforeBetweenOrAfter) {
  const std::string good = archive(kTwo);
  expect_refusal([&] { read_zip_directory("x" + good); }, "not right before its end");
  expect_refusal([&] { read_zip_directory(good + "x"); }, "does not end as an archive does");
  expect_refusal([&] { read_zip_directory(good + good); }, "not right before its end");
  expect_refusal([&] { read_zip_directory(archive(kTwo, "hidden")); }, "not what the directory");
  expect_refusal([&] { read_zip_directory(archive(kTwo, header_of(kTwo[1]))); },
                 "not what the directory");
}

TEST(ZipDirectory, TheDirectoryAndTheRecordsAgree) {
  Record lying = kTwo[0];
  lying.own_name = "m/c";
  expect_refusal([&] { read_zip_directory(archive({lying, kTwo[1]})); }, "m/a is not what");
  std::string file = archive(kTwo);
  const size_t entry = file.find("PK\1\2");
  file[entry + 20] = file[entry + 24] = 4;  // the first record is shorter than it is
  expect_refusal([&] { read_zip_directory(file); }, "m/a is not what");
  file = archive(kTwo);
  file[file.size() - 22 + 8] = file[file.size() - 22 + 10] = 1;  // one record
  expect_refusal([&] { read_zip_directory(file); }, "room that no record takes");
  file[file.size() - 22 + 8] = file[file.size() - 22 + 10] = 3;
  expect_refusal([&] { read_zip_directory(file); }, "its directory is damaged");
}

TEST(ZipDirectory, NamesAreThoseOfPlainFiles) {
  for (const char* name : {"", "/etc/passwd", "m/../x", "..", "m/", "m\\x", "m/\x1b[31m"})
    expect_refusal([&] { read_zip_directory(archive({{name, "x"}})); }, "name");
  expect_refusal([&] { read_zip_directory(archive({{std::string("m/a\0b", 5), "x"}})); }, "name");
  expect_refusal([&] { read_zip_directory(archive({{"m/a", "x"}, {"M/A", "y"}})); }, "twice");
}

TEST(ZipDirectory, RecordsArePlainFiles) {
  const auto with = [](int flags, int method, uint32_t attributes) {
    return [=] { read_zip_directory(archive({{"m/a", "x", flags, method, attributes}})); };
  };
  expect_refusal(with(0, 0, 0120777u << 16), "is a link");
  expect_refusal(with(0, 0, 0040755u << 16), "is a link, a folder");
  expect_refusal(with(1, 0, 0), "encrypted");
  expect_refusal(with(0, 12, 0), "unknown way");
  EXPECT_NO_THROW(with(0, 0, 0100644u << 16)());
}

TEST(ZipDirectory, EveryCutAndEveryByteIsSafe) {
  const std::string good = archive(kTwo);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW(read_zip_directory(std::string_view(good).substr(0, size)), InvalidInput) << size;
  for (size_t at = 0; at < good.size(); ++at)
    for (int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::string changed = good;
      changed[at] = static_cast<char>(value);
      try {
        read_zip_directory(changed);
      } catch (const InvalidInput&) {
      }
    }
}

}  // namespace
}  // namespace tessera::zip_directory_test

// Readers in processes of their own: what goes wrong there becomes an error here.

#include "tessera/images/reader_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "tests/unit/images/array_boxes.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::reader_process_test {
namespace {

/// A row of numbers that begins with the process that reads it.
class Fake final : public ArrayFile {
 public:
  explicit Fake(const std::string& path, const ArrayOptions& options) : ArrayFile(path) {
    info_.shape = {4, 1000};
    info_.axes = "YX";
    info_.type = PixelType::kInt32;
    info_.frame.spacing = {0.5, options.microns_per_pixel.value_or(7)};
    info_.frame.affine = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    info_.frame.projection = options.dataset;
    info_.frame.no_data = -1;
    if (path == "bad block") info_.block = {0, 1000};
    if (path == "short block") info_.block = {1};
    if (path == "bad axes") info_.axes = "Y";
  }
  void read(const Box& box, void* to) const override {
    if (path() == "crash") std::raise(SIGSEGV);
    if (path() == "leave") ::_exit(0);
    if (path() == "slow") ::usleep(300'000);
    if (path() == "odd") throw std::runtime_error("odd");
    auto* numbers = static_cast<int32_t*>(to);
    for (int64_t i = 0; i < box.volume(); ++i) numbers[i] = ::getpid();
  }
};

std::unique_ptr<ArrayFile> open_fake(const std::string& path, const ArrayOptions& options) {
  if (path == "crash at once") std::abort();
  if (path == "refuse") throw_error<InvalidInput>("[fake] {}: no", path);
  if (path == "unsupported") throw_error<Unsupported>("[fake] {}: not yet", path);
  if (path == "much") {
    const std::vector<char> much(size_t{4} << 30);
    throw_error<InvalidInput>("[fake] {}: {} bytes", path, much.size());
  }
  return std::make_unique<Fake>(path, options);
}

std::unique_ptr<ArrayFile> opened(const std::string& path, const ArrayOptions& options = {}) {
  return open_in_reader(path, options, open_fake, 1 << 30);
}

int reader_of(const ArrayFile& file) {
  const std::vector<int32_t> numbers = numbers_of<int32_t>(file);
  EXPECT_EQ(numbers, std::vector<int32_t>(4000, numbers[0]));
  return numbers[0];
}

TEST(ReaderProcess, InfoAndNumbersComeFromAnotherProcess) {
  const auto file = opened("a", {.microns_per_pixel = 0.25, .dataset = "name"});
  EXPECT_EQ(file->shape(), (Shape{4, 1000}));
  EXPECT_EQ(file->info().axes, "YX");
  EXPECT_EQ(file->type(), PixelType::kInt32);
  EXPECT_EQ(file->info().frame,
            Fake("a", {.microns_per_pixel = 0.25, .dataset = "name"}).info().frame);
  EXPECT_NE(reader_of(*file), ::getpid());
}

TEST(ReaderProcess, ErrorsKeepTheirKindAndWords) {
  EXPECT_EQ(refusal([] { opened("refuse"); }), "[fake] refuse: no");
  EXPECT_EQ(message_of<Unsupported>([] { opened("unsupported"); }), "[fake] unsupported: not yet");
  expect_refusal([] { opened("much"); }, "much: reading it takes more memory");
  expect_refusal([] { read_whole(*opened("odd")); }, "odd: cannot be read (odd)");
}

TEST(ReaderProcess, ACrashIsAnErrorAndTheNextFileIsRead) {
  const auto before = opened("before");
  EXPECT_GT(reader_of(*before), 0);
  expect_refusal([] { opened("crash at once"); }, "crash at once: its reader crashed");
  expect_refusal([] { read_whole(*opened("crash")); }, "crash: its reader crashed");
  expect_refusal([] { read_whole(*opened("leave")); }, "leave: its reader crashed");
  EXPECT_GT(reader_of(*before), 0);  // opened again, in another reader
  EXPECT_GT(reader_of(*opened("after")), 0);
}

TEST(ReaderProcess, ManyFilesAndThreadsShareFewReaders) {
  std::vector<std::unique_ptr<ArrayFile>> files;
  for (int i = 0; i < 40; ++i) files.push_back(opened(std::to_string(i)));
  std::vector<std::thread> threads;
  std::vector<std::vector<int>> readers(8);
  for (size_t thread = 0; thread < readers.size(); ++thread)
    threads.emplace_back([&, thread] {
      for (const auto& file : files) readers[thread].push_back(reader_of(*file));
    });
  for (std::thread& thread : threads) thread.join();
  std::set<int> all;
  for (const std::vector<int>& some : readers) all.insert(some.begin(), some.end());
  EXPECT_LE(all.size(), 4u);
  EXPECT_GE(all.size(), 1u);
}

/// What a reader says of a file may be the words of a library that the file has damaged.
TEST(ReaderProcess, AnswersThatDoNotHoldTogetherAreRefused) {
  for (const char* path : {"bad block", "short block", "bad axes"})
    expect_refusal([&] { opened(path); }, "its reader gave an answer that does not hold together");
}

/// Opening a file may take long, so it is asked where it is open.
TEST(ReaderProcess, AFileIsReadWhereItIsOpen) {
  const auto slow = opened("slow");
  std::thread other([&] { reader_of(*slow); });
  ::usleep(50'000);
  const auto file = opened("a");  // by another reader than the first, which is at work
  const int reader = reader_of(*file);
  other.join();
  EXPECT_EQ(reader_of(*file), reader);
}

TEST(ReaderProcess, AForkedProcessHasReadersOfItsOwn) {
  const auto file = opened("a");
  const int reader = reader_of(*file);
  EXPECT_EQ(text_of_child([&] { return reader_of(*file) == reader ? "the same" : "another"; }),
            "another");
  EXPECT_EQ(reader_of(*file), reader);
}

TEST(ReaderProcess, ReadersEndWithTheirProcess) {
  const std::string text = text_of_child([] { return std::to_string(reader_of(*opened("a"))); });
  const int reader = std::stoi(text);
  for (int i = 0; i < 1000 && ::kill(reader, 0) == 0; ++i) ::usleep(10'000);
  EXPECT_NE(::kill(reader, 0), 0);
}

}  // namespace
}  // namespace tessera::reader_process_test

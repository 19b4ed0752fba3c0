// Writing .npy files by boxes: from threads and from a second opener, whole or not at all, and a
// disk without room is an error.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/data/array_reader.h"
#include "tessera/data/array_sink.h"
#include "tests/unit/data/npy_bytes.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::npy_writer_test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

at::Tensor part_of(at::Tensor whole, const Box& box) {
  for (int axis = 0; axis < box.num_axes(); ++axis)
    whole = whole.narrow(axis, box[axis].begin, box[axis].size());
  return whole;
}

TEST(NpyWriter, BoxesOfManyRanksMakeTheWhole) {
  const ScratchFolder folder;
  const Shape shape{3, 20, 31};
  const at::Tensor classes = at::arange(3 * 20 * 31).view(shape).remainder(200);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const std::string path = folder.file("out.npy");
    const auto creator = create_array_writer(path, {.shape = shape, .type = PixelType::kUint8});
    const std::string name = creator->temporary_name();
    const auto pieces = random_bisection(random, shape, 6);
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 6; ++rank)
      ranks.emplace_back([&, rank] {
        const auto writer =
            join_array_writer(path, name, {.shape = shape, .type = PixelType::kUint8});
        for (const Piece& piece : pieces)
          if (piece.rank == rank && !piece.box.empty())
            write_tensor(*writer, piece.box, part_of(classes, piece.box));
        writer->flush();
      });
    for (std::thread& rank : ranks) rank.join();
    creator->commit();
    const ArrayReader array(path);
    EXPECT_EQ(array.type(), PixelType::kUint8);
    at::Tensor read = at::empty(shape, at::kLong);
    array.read(Box::whole(shape), read);
    EXPECT_TRUE(read.equal(classes)) << "seed " << seed;
  }
}

TEST(NpyWriter, EveryTypeReadsBack) {
  const ScratchFolder folder;
  for (const PixelType type :
       {PixelType::kFloat32, PixelType::kFloat64, PixelType::kUint8, PixelType::kUint16,
        PixelType::kInt16, PixelType::kInt32, PixelType::kInt64, PixelType::kInt8,
        PixelType::kUint32, PixelType::kUint64, PixelType::kFloat16}) {
    const auto writer = create_array_writer(folder.file("a.npy"), {.shape = {2, 3}, .type = type});
    const bool real = is_real(type);
    const at::Tensor values = at::arange(6, real ? at::kFloat : at::kLong).view({2, 3}).t();
    write_tensor(*writer, Box::whole({2, 3}), values.contiguous().view({2, 3}));
    write_tensor(*writer, {{0, 1}, {1, 3}}, values.narrow(0, 0, 2).narrow(1, 0, 1).t());  // strided
    writer->commit();
    at::Tensor read = at::empty({2, 3}, at::kDouble);
    ArrayReader(folder.file("a.npy")).read(Box::whole({2, 3}), read);
    EXPECT_TRUE(read.equal(at::tensor({0., 0., 1., 4., 2., 5.}, at::kDouble).view({2, 3})))
        << name_of(type);
  }
}

TEST(NpyWriter, TheNameAppearsWithCommitOnly) {
  const ScratchFolder folder;
  const std::string path = folder.file("out.npy");
  write_bytes(path, "old");
  {
    const auto writer = create_array_writer(path, {.shape = {100}, .type = PixelType::kFloat32});
    write_tensor(*writer, Box::whole({100}), at::ones({100}));
    EXPECT_EQ(read_bytes(path), "old");
    EXPECT_TRUE(fs::exists(writer->temporary_name()));
  }
  EXPECT_EQ(read_bytes(path), "old");
  EXPECT_EQ(names_in(folder.path()), Names{"out.npy"});
  const std::string left_by_a_killed_run = folder.file(".out.npy.0123456789abcdef.writing");
  write_bytes(left_by_a_killed_run, std::string(100000, 'x'));
  const auto writer = create_array_writer(path, {.shape = {100}, .type = PixelType::kFloat32});
  writer->commit();
  EXPECT_EQ(ArrayReader(path).shape(), Shape{100});
  EXPECT_EQ(names_in(folder.path()), Names{"out.npy"});
  EXPECT_THROW(writer->commit(), InternalError);
}

TEST(NpyWriter, AGuestLeavesTheFileAlone) {
  const ScratchFolder folder;
  const std::string path = folder.file("out.npy");
  const auto join = [&](const std::string& name) {
    return join_array_writer(path, name, {.shape = {4}, .type = PixelType::kUint8});
  };
  expect_refusal([&] { join(folder.file("none")); }, "a folder that all machines share");
  const auto creator = create_array_writer(path, {.shape = {4}, .type = PixelType::kUint8});
  {
    const auto guest = join(creator->temporary_name());
    EXPECT_EQ(guest->shape(), Shape{4});
    EXPECT_THROW(guest->commit(), InternalError);
  }
  EXPECT_TRUE(fs::exists(creator->temporary_name()));
}

TEST(NpyWriter, ASecondCreatorIsRefused) {
  const ScratchFolder folder;
  const auto creator =
      create_array_writer(folder.file("out.npy"), {.shape = {4}, .type = PixelType::kUint8});
  expect_refusal(
      [&] {
        create_array_writer(folder.file("out.npy"), {.shape = {4}, .type = PixelType::kUint8});
      },
      "another process is writing it");
  creator->commit();
  EXPECT_EQ(ArrayReader(folder.file("out.npy")).shape(), Shape{4});
}

TEST(NpyWriter, NumbersThatDoNotFitAreRefused) {
  const ScratchFolder folder;
  const auto writer =
      create_array_writer(folder.file("a.npy"), {.shape = {2}, .type = PixelType::kUint8});
  EXPECT_NE(message_of<InvalidInput>([&] {
              write_tensor(*writer, Box::whole({2}), at::tensor({0, 256}, at::kLong));
            }).find("256 does not fit"),
            std::string::npos);
  EXPECT_THROW(write_tensor(*writer, Box::whole({2}), at::tensor({0, -1}, at::kLong)),
               InvalidInput);
  EXPECT_THROW(write_tensor(*writer, Box::whole({2}), at::zeros({2})), InvalidInput);
  EXPECT_THROW(write_tensor(*writer, {{0, 3}}, at::zeros({3}, at::kLong)), InternalError);
}

TEST(NpyWriter, ADiskWithoutRoomIsAnErrorBeforeAnythingIsWritten) {
  const ScratchFolder folder;
  const std::string path = folder.file("out.npy");
  const std::string message = message_of<InvalidInput>([&] {
    create_array_writer(path, {.shape = {int64_t{1} << 50}, .type = PixelType::kFloat32});
  });
  EXPECT_NE(message.find("free some space"), std::string::npos) << message;
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_THROW(
      create_array_writer(path, {.shape = {int64_t{1} << 62}, .type = PixelType::kFloat32}),
      InvalidInput);
  EXPECT_THROW(create_array_writer(path, {.shape = {-1}, .type = PixelType::kFloat32}),
               InvalidInput);
}

// The system refuses to let the file grow, as it does on a full disk or beyond a quota.
TEST(NpyWriter, AFailureToReserveIsAnErrorAndNoSignal) {
  const ScratchFolder folder;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{65536, before.rlim_max};
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of<InvalidInput>([&] {
    create_array_writer(folder.file("out.npy"), {.shape = {100000}, .type = PixelType::kFloat32});
  });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, old_handler);
  EXPECT_NE(message.find("cannot reserve space"), std::string::npos) << message;
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(NpyWriter, AFolderThatIsNotThere) {
  const ScratchFolder folder;
  EXPECT_NE(message_of<InvalidInput>([&] {
              create_array_writer(folder.file("none/out.npy"),
                                  {.shape = {2}, .type = PixelType::kUint8});
            }).find("No such file or directory"),
            std::string::npos);
  write_bytes(folder.file("plain"), "");
  EXPECT_THROW(
      create_array_writer(folder.file("plain/out.npy"), {.shape = {2}, .type = PixelType::kUint8}),
      InvalidInput);
}

}  // namespace
}  // namespace tessera::npy_writer_test

// Which axis of a file is which axis of an image, for every order of axes; files that are opened on
// demand.

#include "tessera/data/file_images.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "tessera/data/in_parallel.h"
#include "tessera/data/open_files.h"
#include "tests/unit/data/npy_bytes.h"

namespace tessera::file_images_test {
namespace {

/// Number i at place i.
class Counting final : public ArrayFile {
 public:
  Counting(Shape shape, std::string axes, PixelType type = PixelType::kInt32)
      : ArrayFile("counting") {
    info_.shape = std::move(shape);
    info_.axes = std::move(axes);
    info_.type = type;
  }
  void read(const Box& box, void* to) const override {
    const at::Tensor all =
        at::arange(Box::whole(shape()).volume(), at::kInt).view(at::IntArrayRef(shape()));
    at::Tensor part = all;
    for (int axis = 0; axis < box.num_axes(); ++axis)
      part = part.slice(axis, box[axis].begin, box[axis].end);
    std::memcpy(to, part.contiguous().data_ptr<int>(), static_cast<size_t>(part.numel()) * 4);
  }
};

at::Tensor whole_array(const ArrayFile& file) {
  return at::arange(Box::whole(file.shape()).volume(), at::kDouble)
      .view(at::IntArrayRef(file.shape()));
}

/// A sample, read as a whole and by a box, the box into a strided view.
at::Tensor sample_of(const std::shared_ptr<const ArrayFile>& file, const FileAxes& axes,
                     int64_t sample) {
  const ArrayReader reader(file);
  const Shape shape = sample_shape(axes, file->shape());
  at::Tensor whole = at::zeros(shape, at::kDouble);
  read_sample(reader, axes, sample, Box::whole(shape), whole);
  Box box = Box::whole(shape);
  at::Tensor expected = whole, buffer = at::zeros(shape, at::kDouble), part = buffer;
  for (int axis = 0; axis < box.num_axes(); ++axis) {
    box[axis] = {shape[axis] / 3, std::max<int64_t>(shape[axis] / 3 + 1, shape[axis] - 1)};
    expected = expected.slice(axis, box[axis].begin, box[axis].end);
    part = part.slice(axis, box[axis].begin, box[axis].end);
  }
  read_sample(reader, axes, sample, box, part);
  EXPECT_TRUE(part.equal(expected));
  EXPECT_EQ(buffer.sum().item<double>(), expected.sum().item<double>()) << "beside the box";
  return whole;
}

struct NamedCase {
  std::string axes;
  Shape held;
  ImageWish wish;
  Shape image;
  std::vector<int64_t> order;  // of the file's axes, those of size 1 that vanish left out
};

TEST(ImageAxes, OfNamedAxes) {
  const std::vector<NamedCase> cases{
      {"YX", {4, 5}, {.shape = {1, 9, 9}}, {1, 4, 5}, {}},
      {"YXC", {4, 5, 3}, {.shape = {3, 9, 9}}, {3, 4, 5}, {2, 0, 1}},
      {"CYX", {3, 4, 5}, {.shape = {3, 9, 9}}, {3, 4, 5}, {0, 1, 2}},
      {"ZYX", {2, 4, 5}, {.shape = {1, 9, 9, 9}}, {1, 2, 4, 5}, {}},
      {"ZYX", {1, 4, 5}, {.shape = {1, 9, 9}}, {1, 4, 5}, {}},
      {"PYX", {3, 4, 5}, {.shape = {1, 9, 9, 9}}, {1, 3, 4, 5}, {}},
      {"PYX", {3, 4, 5}, {.shape = {3, 9, 9}}, {3, 4, 5}, {0, 1, 2}},
      {"PYX", {3, 4, 5}, {}, {3, 4, 5}, {0, 1, 2}},
      {"PYXC", {6, 4, 5, 3}, {.shape = {3, 9, 9, 9}}, {3, 6, 4, 5}, {3, 0, 1, 2}},
      {"PCYX", {1, 3, 4, 5}, {.shape = {3, 9, 9}}, {3, 4, 5}, {}},
      {"PZYX", {2, 3, 4, 5}, {.shape = {2, 9, 9, 9}}, {2, 3, 4, 5}, {0, 1, 2, 3}},
      {"XCY", {5, 3, 4}, {.shape = {3, 9, 9}}, {3, 4, 5}, {1, 2, 0}},
      {"PYX", {3, 4, 5}, {.pages = Pages::kDepth}, {1, 3, 4, 5}, {}},
  };
  for (const NamedCase& each : cases) {
    const auto file = std::make_shared<Counting>(each.held, each.axes);
    const FileAxes axes = image_axes(*file, each.wish);
    EXPECT_EQ(sample_shape(axes, each.held), each.image) << each.axes;
    EXPECT_EQ(samples_in(axes, each.held), 1) << each.axes;
    const at::Tensor all = whole_array(*file);
    const at::Tensor expected =
        each.order.empty() ? all.view(at::IntArrayRef(each.image)) : all.permute(each.order);
    EXPECT_TRUE(sample_of(file, axes, 0).equal(expected)) << each.axes;
  }
}

TEST(ImageAxes, PagesAreSamplesInASetOfOneFile) {
  const auto file = std::make_shared<Counting>(Shape{6, 4, 5, 3}, "PYXC");
  const FileAxes axes = image_axes(*file, {.shape = {3, 9, 9}, .many_samples = true});
  EXPECT_EQ(samples_in(axes, file->shape()), 6);
  EXPECT_TRUE(sample_of(file, axes, 4).equal(whole_array(*file)[4].permute({2, 0, 1})));
  // Pages that are the channels which the network takes are channels also there.
  EXPECT_EQ(
      samples_in(image_axes(Counting({3, 4, 5}, "PYX"), {.shape = {3, 9, 9}, .many_samples = true}),
                 {3, 4, 5}),
      1);
}

TEST(ImageAxes, RefusesWhatDoesNotFit) {
  const auto refused = [](const Shape& held, const std::string& axes, const ImageWish& wish,
                          const std::string& words) {
    expect_refusal([&] { image_axes(Counting(held, axes), wish); }, words);
  };
  refused({4, 5, 3}, "YXC", {.shape = {1, 4, 5}},
          "an image is 3x4x5 (channels x spatial; the "
          "file's axes YXC are 4x5x3), the network takes");
  refused({4, 5}, "YX", {.shape = {1, 4, 5, 6}}, "the network takes 1x4x5x6");
  refused({7, 4, 5, 3}, "PYXC", {.shape = {3, 4, 5}}, "7 pages of 3 channels each");
  refused({7, 4, 5, 3}, "PYXC", {.pages = Pages::kChannels}, "pages cannot be channels");
  refused({7, 4, 5}, "PYX", {.pages = Pages::kSamples}, "pages=samples is for a set of one file");
  refused({2, 7, 4, 5}, "PZYX", {.pages = Pages::kDepth}, "each page has a depth");
  refused({0, 5}, "YX", {}, "sizes are at least 1");
  refused({4, 5, 3}, "", {.shape = {3, 9, 9}}, "--channels-last where it has its channels there");
  refused({4}, "", {.shape = {3, 9, 9}}, "the file's shape is 4");
  refused({2, 2, 2, 2, 2}, "", {}, "channels x 1 to 3 spatial sizes");
}

TEST(ImageAxes, WithoutNamesAndWishesMasksTell) {
  EXPECT_EQ(sample_shape(image_axes(Counting({4, 5}, ""), {}), {4, 5}), (Shape{1, 4, 5}));
  EXPECT_EQ(sample_shape(image_axes(Counting({3, 4, 5}, ""), {}), {3, 4, 5}), (Shape{3, 4, 5}));
  EXPECT_EQ(
      sample_shape(image_axes(Counting({3, 4, 5}, ""), {.target_sizes = {3, 4, 5}}), {3, 4, 5}),
      (Shape{1, 3, 4, 5}));
}

TEST(TargetAxes, OfMasks) {
  const auto shape = [](const Shape& held, const std::string& axes, int num_spatial,
                        bool numbers = false) {
    return sample_shape(
        target_axes(Counting(held, axes), {.num_spatial = num_spatial, .are_numbers = numbers}),
        held);
  };
  EXPECT_EQ(shape({4, 5}, "YX", 2), (Shape{4, 5}));
  EXPECT_EQ(shape({4, 5, 1}, "YXC", 2), (Shape{4, 5}));
  EXPECT_EQ(shape({1, 4, 5}, "ZYX", 2), (Shape{4, 5}));
  EXPECT_EQ(shape({3, 4, 5}, "PYX", 3), (Shape{3, 4, 5}));
  EXPECT_EQ(shape({1, 4, 5}, "", 2), (Shape{4, 5}));
  EXPECT_EQ(shape({4, 5, 1}, "", 2), (Shape{4, 5}));
  EXPECT_EQ(shape({4, 5}, "YX", 2, true), (Shape{1, 4, 5}));
  EXPECT_EQ(shape({4, 5, 2}, "YXC", 2, true), (Shape{2, 4, 5}));
  for (const char* axes : {"YXC", ""})
    expect_refusal(
        [&] {
          shape({4, 5, 3}, axes, 2);
        },
        "a mask with 3 channels (shape 4x5x3), where each pixel has one label");
  expect_refusal([&] { shape({3, 4, 5}, "PYX", 2); }, "a mask with 3 channels");
}

TEST(OpenFiles, KeepsAFewOpenAndReadersTheirs) {
  ScratchFolder folder;
  for (int i = 0; i < 9; ++i)
    write_bytes(folder / (std::to_string(i) + ".npy"),
                npy_of<uint8_t>("|u1", "(1,)", {static_cast<uint8_t>(i)}));
  const OpenFiles files({}, 3);
  std::mutex mutex;
  std::vector<std::weak_ptr<const ArrayFile>> got;
  const auto num_open = [&] {
    std::set<std::shared_ptr<const ArrayFile>> open;
    for (const auto& file : got)
      if (const auto held = file.lock()) open.insert(held);
    return open.size();
  };
  auto first = files.get(folder / "0.npy");
  EXPECT_EQ(files.get(folder / "0.npy"), first);
  in_parallel(900, 4, [&](int64_t index, int64_t) {
    uint8_t number = 99;
    const auto file = files.get(folder / (std::to_string(index % 9) + ".npy"));
    file->read({{0, 1}}, &number);
    const std::lock_guard lock(mutex);
    got.push_back(file);
    if (number != index % 9) throw_error<InvalidInput>("{} for {}", number, index % 9);
  });
  uint8_t number = 99;
  first->read({{0, 1}}, &number);
  EXPECT_EQ(number, 0);
  first.reset();
  EXPECT_EQ(num_open(), 3u);
  EXPECT_THROW(files.get(folder / "none.npy"), InvalidInput);
  EXPECT_EQ(num_open(), 3u);
}

TEST(InParallel, DoesAllAndTellsTheFirstFailure) {
  for (int threads : {1, 4}) {
    std::vector<int> done(1000, 0);
    in_parallel(1000, threads, [&](int64_t index, int64_t) { ++done[index]; });
    EXPECT_EQ(std::count(done.begin(), done.end(), 1), 1000);
    for (int trial = 0; trial < 20; ++trial)
      EXPECT_EQ(message_of<InvalidInput>([&] {
                  in_parallel(1000, threads, [](int64_t index, int64_t) {
                    if (index % 300 == 299) throw_error<InvalidInput>("{}", index);
                  });
                }),
                "299");
  }
  in_parallel(0, 4, [](int64_t, int64_t) { FAIL(); });
}

}  // namespace
}  // namespace tessera::file_images_test

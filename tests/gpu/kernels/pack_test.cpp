// Lists of boxes beside the same moves one by one.

#include "tessera/kernels/pack.h"

#include "tests/gpu/kernels/tested.h"

namespace tessera::gpu_test {
namespace {

using Boxes = std::vector<at::Tensor>;

constexpr std::initializer_list<at::ScalarType> kAllTypes{at::kDouble, at::kFloat, at::kBFloat16,
                                                          at::kLong,   at::kInt,   at::kByte};

at::Tensor draw_buffer(Random& random, at::ScalarType type, int64_t channels) {
  const int64_t num_spatial = random.between(1, 3);
  std::vector<int64_t> shape{random.between(1, 2), channels};
  for (int64_t axis = 0; axis < num_spatial; ++axis) shape.push_back(random.between(3, 12));
  const at::Tensor buffer = random.uniform(shape, 0, 100).to(tested_device(), type);
  return random.between(0, 3) ? buffer.movedim(1, -1).contiguous().movedim(-1, 1) : buffer;
}

/// Often without a margin along some axes, so that axes of the box join.
at::Tensor draw_box(Random& random, at::Tensor view) {
  for (int64_t axis = 0; axis < view.dim(); ++axis) {
    if (random.between(0, 1)) continue;
    const int64_t begin = random.between(0, view.size(axis) - 1);
    view = view.narrow(axis, begin, random.between(1, view.size(axis) - begin));
  }
  return view;
}

/// Room for a box in a strip that is dense, in either order.
at::Tensor draw_room(Random& random, const at::Tensor& strip, int64_t offset,
                     const at::Tensor& box) {
  const at::Tensor room = strip.narrow(0, offset, box.numel());
  if (random.between(0, 1)) return room.view(box.sizes());
  return room.view(box.movedim(1, -1).sizes()).movedim(-1, 1);
}

struct Strip {
  at::Tensor numbers;
  Boxes views, rooms;  // in the buffer, and one after the other in the strip
};

Strip draw_strip(Random& random, const at::Tensor& buffer, at::ScalarType type, int64_t count) {
  Strip strip;
  int64_t length = random.between(0, 3);
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < count; ++i) {
    strip.views.push_back(draw_box(random, buffer));
    offsets.push_back(length);
    length += strip.views.back().numel();
  }
  strip.numbers = random.uniform({length}, 0, 100).to(tested_device(), type);
  for (size_t i = 0; i < offsets.size(); ++i)
    strip.rooms.push_back(draw_room(random, strip.numbers, offsets[i], strip.views[i]));
  return strip;
}

/// Moves by both tables what `sources` and `targets` of the same buffers are, and compares all of
/// the buffer that is written.
void expect_same_moves(BoxStore store, const Boxes& sources, const Boxes& targets,
                       const at::Tensor& written) {
  const at::Tensor before = written.clone();
  PackKernels::kAten.move_boxes(store, sources, targets);
  const at::Tensor expected = written.clone();
  written.copy_(before);
  tested_table<PackKernels>().move_boxes(store, sources, targets);
  EXPECT_TRUE(written.equal(expected));
}

TEST(PackKernelsOfDevice, PackAndUnpack) {
  for_many_cases(25, kAllTypes, [](Random& random, at::ScalarType type) {
    const at::Tensor buffer = draw_buffer(random, type, random.one_of({1, 3, 8, 16, 20}));
    const Strip strip = draw_strip(random, buffer, type, random.one_of({1, 3, 40}));
    expect_same_moves(BoxStore::kReplace, strip.views, strip.rooms, strip.numbers);
    expect_same_moves(BoxStore::kAdd, strip.views, strip.rooms, strip.numbers);
  });
}

// Boxes overlap as those of neighbours do at corners: each must find what the one before has left.
TEST(PackKernelsOfDevice, WhatOverlapsIsInOrder) {
  for_many_cases(25, kAllTypes, [](Random& random, at::ScalarType type) {
    const at::Tensor buffer = draw_buffer(random, type, random.one_of({1, 3, 8, 16, 20}));
    const Strip strip = draw_strip(random, buffer, type, random.between(2, 12));
    expect_same_moves(BoxStore::kReplace, strip.rooms, strip.views, buffer);
    expect_same_moves(BoxStore::kAdd, strip.rooms, strip.views, buffer);
  });
}

TEST(PackKernelsOfDevice, OtherTypesAreConverted) {
  for_many_cases(12, kRealTypes, [](Random& random, at::ScalarType type) {
    for (const at::ScalarType other : kAllTypes) {
      const at::Tensor buffer = draw_buffer(random, type, random.one_of({1, 3, 8, 16, 20}));
      const Strip strip = draw_strip(random, buffer, other, random.between(1, 5));
      expect_same_moves(BoxStore::kReplace, strip.rooms, strip.views, buffer);
      expect_same_moves(BoxStore::kAdd, strip.rooms, strip.views, buffer);
      expect_same_moves(BoxStore::kReplace, strip.views, strip.rooms, strip.numbers);
    }
  });
}

TEST(PackKernelsOfDevice, EmptyBoxesAndListsAreNothing) {
  const at::Tensor buffer = at::zeros({1, 8, 4, 4}, at::TensorOptions().device(tested_device()));
  const at::Tensor nothing = buffer.narrow(2, 1, 0), box = buffer.narrow(2, 1, 2);
  tested_table<PackKernels>().move_boxes(BoxStore::kAdd, {nothing, at::ones_like(box)},
                                         {nothing, box});
  tested_table<PackKernels>().zero_boxes({nothing});
  move_boxes(BoxStore::kAdd, {}, {});
  zero_boxes({});
  EXPECT_EQ(buffer.sum().item<double>(), 8 * 2 * 4);
}

TEST(PackKernelsOfDevice, ManyBoxesOfOneKindAreOneList) {
  Random random(0);
  const at::Tensor buffer = draw_buffer(random, at::kFloat, 8);
  const Strip strip = draw_strip(random, buffer, at::kFloat, 100);
  expect_same_moves(BoxStore::kReplace, strip.views, strip.rooms, strip.numbers);
}

TEST(PackKernelsOfDevice, Zeros) {
  for_many_cases(25, kAllTypes, [](Random& random, at::ScalarType type) {
    const at::Tensor buffer = draw_buffer(random, type, random.one_of({1, 3, 8, 16, 20}));
    buffer.add_(1);
    const Strip strip = draw_strip(random, buffer, type, random.one_of({1, 4, 40}));
    const at::Tensor before = buffer.clone();
    PackKernels::kAten.zero_boxes(strip.views);
    const at::Tensor expected = buffer.clone();
    buffer.copy_(before);
    tested_table<PackKernels>().zero_boxes(strip.views);
    EXPECT_TRUE(buffer.equal(expected));
  });
}

}  // namespace
}  // namespace tessera::gpu_test

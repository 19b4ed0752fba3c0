// A transfer T is linear, and its adjoint T* runs the moves backwards and adds. On arrays of small
// integers both <T x, y> = <x, T* y> and T* y itself are exact.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "tessera/geometry/transfer.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::transfer_adjoint_test {
namespace {

/// A buffer that holds one box, as a piece or a need does.
using Buffer = std::map<Shape, int64_t>;

Buffer random_buffer(Random& random, const Box& box) {
  Buffer buffer;
  for_each_position(box, [&](const Shape& at) { buffer[at] = random.between(-9, 9); });
  return buffer;
}

Buffer zero_buffer(const Box& box) {
  Buffer buffer;
  for_each_position(box, [&](const Shape& at) { buffer[at] = 0; });
  return buffer;
}

int64_t dot(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
  int64_t sum = 0;
  for (size_t index = 0; index < a.size(); ++index)
    for (const auto& [position, value] : a[index]) sum += value * b[index].at(position);
  return sum;
}

struct Problem {
  Layout layout;
  std::vector<Need> needs;
  std::vector<Buffer> x;  // one per piece
  std::vector<Buffer> y;  // one per need
};

Problem random_problem(Random& random) {
  const Shape shape = random_shape(random, static_cast<int>(random.between(1, 5)), 60);
  Problem problem{random_layout(random, shape, 4), {}, {}, {}};
  for (int64_t count = random.between(1, 5); count > 0; --count)
    problem.needs.push_back({random_box(random, shape, 2), static_cast<int>(random.between(0, 3))});
  for (const Piece& piece : problem.layout.pieces())
    problem.x.push_back(random_buffer(random, piece.box));
  for (const Need& need : problem.needs) problem.y.push_back(random_buffer(random, need.box));
  return problem;
}

/// T x: needs filled from the owners, 0 outside the image.
std::vector<Buffer> apply(const Transfer& transfer, const Problem& problem) {
  std::vector<Buffer> result;
  for (const Need& need : problem.needs) result.push_back(zero_buffer(need.box));
  for (const Move& move : transfer.moves())
    for_each_position(move.box, [&](const Shape& at) {
      result[move.need].at(at) = problem.x[move.source_piece].at(at);
    });
  return result;
}

/// T* y: the moves backwards, added.
std::vector<Buffer> apply_adjoint(const Transfer& transfer, const Problem& problem) {
  std::vector<Buffer> result;
  for (const Piece& piece : problem.layout.pieces()) result.push_back(zero_buffer(piece.box));
  for (const Move& move : transfer.moves())
    for_each_position(move.box, [&](const Shape& at) {
      result[move.source_piece].at(at) += problem.y[move.need].at(at);
    });
  return result;
}

TEST(TransferAdjoint, SatisfiesTheInnerProductIdentity) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Problem problem = random_problem(random);
    const Transfer transfer(problem.layout, problem.needs);
    EXPECT_EQ(dot(apply(transfer, problem), problem.y),
              dot(problem.x, apply_adjoint(transfer, problem)));
  }
}

TEST(TransferAdjoint, ForwardReadsTheGlobalArray) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Problem problem = random_problem(random);
    Buffer global;
    for (const Buffer& buffer : problem.x) global.insert(buffer.begin(), buffer.end());
    const Transfer transfer(problem.layout, problem.needs);
    for (const Buffer& filled : apply(transfer, problem))
      for (const auto& [position, value] : filled)
        ASSERT_EQ(value, global.contains(position) ? global.at(position) : 0);
  }
}

TEST(TransferAdjoint, OwnersReceiveTheSumOverAllNeeds) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Problem problem = random_problem(random);
    const Transfer transfer(problem.layout, problem.needs);
    for (const Buffer& received : apply_adjoint(transfer, problem))
      for (const auto& [position, value] : received) {
        int64_t sum = 0;
        for (const Buffer& y : problem.y)
          if (y.contains(position)) sum += y.at(position);
        ASSERT_EQ(value, sum);
      }
  }
}

}  // namespace
}  // namespace tessera::transfer_adjoint_test

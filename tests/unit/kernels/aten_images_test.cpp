// Kernels made of ATen's functions beside the loops on the CPU: interpolation of pieces, and the
// Dice loss.

#include "tests/unit/kernels/tables.h"

#include "tessera/kernels/interpolate.h"
#include "tessera/kernels/loss.h"

namespace tessera::aten_images_test {
namespace {

struct DrawnPiece {
  PieceSources sources;
  Shape from, to;
};

Interpolation draw_axis(Draw& draw, InterpolationMode mode) {
  Interpolation along{mode, Corners::kNotAligned, draw.between(1, 9), draw.between(1, 14), 0};
  const bool may_align = mode == InterpolationMode::kLinear || mode == InterpolationMode::kCubic;
  if (may_align && draw.between(0, 1)) along.corners = Corners::kAligned;
  return along;
}

DrawnPiece draw_piece(Draw& draw, InterpolationMode mode, int64_t num_spatial) {
  DrawnPiece piece;
  piece.from = piece.to = {draw.between(1, 2), draw.between(1, 3)};
  for (int64_t axis = 0; axis < 3 - num_spatial; ++axis) piece.sources[axis] = {{}};
  for (int64_t axis = 3 - num_spatial; axis < 3; ++axis) {
    const Interpolation along = draw_axis(draw, mode);
    const int64_t begin = draw.between(0, along.output_size - 1);
    const Range out{begin, draw.between(begin + 1, along.output_size)}, in = along.needed(out);
    for (int64_t output = out.begin; output < out.end; ++output) {
      piece.sources[axis].push_back(along.source(output));
      for (int64_t& index : piece.sources[axis].back().index) index -= in.begin;
    }
    piece.from.push_back(in.size());
    piece.to.push_back(out.size());
  }
  return piece;
}

TEST(AtenKernels, Interpolation) {
  for (const InterpolationMode mode :
       {InterpolationMode::kNearest, InterpolationMode::kNearestExact, InterpolationMode::kLinear,
        InterpolationMode::kCubic}) {
    const bool copies =
        mode == InterpolationMode::kNearest || mode == InterpolationMode::kNearestExact;
    for_many_draws(100, kWideTypes, [&](Draw& draw, at::ScalarType type, int64_t num_spatial) {
      const DrawnPiece piece = draw_piece(draw, mode, num_spatial);
      const at::Tensor x =
          copies ? wild_numbers(draw, piece.from, type) : any_numbers(draw, piece.from, type);
      const Target y(draw, piece.to, type), right(draw, piece.to, type);
      InterpolateKernels::kAten.interpolate_piece(piece.sources, x, y);
      InterpolateKernels::kCpu.interpolate_piece(piece.sources, x, right);
      expect_near(y, right, copies ? 0 : rounding_of(type));
      const at::Tensor dy = any_numbers(draw, piece.to, type);
      const Target dx(draw, piece.from, type), right_dx(draw, piece.from, type);
      InterpolateKernels::kAten.interpolate_piece_adjoint(piece.sources, dy, dx);
      InterpolateKernels::kCpu.interpolate_piece_adjoint(piece.sources, dy, right_dx);
      expect_near(dx, right_dx, rounding_of(type));
    });
  }
}

// What reads a pixel with the weight 0 does not see that it is none.
TEST(AtenKernels, InterpolationKeepsWhatIsNoNumberToItself) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor x = at::tensor({1.0, 2.0, none, 4.0}).view({1, 1, 4, 1});
  PieceSources sources{AxisSources{{}}, AxisSources{}, AxisSources{{}}};
  for (int64_t i = 0; i < 3; ++i) sources[1].push_back({2, {i, i + 1}, {1, 0}});
  const at::Tensor y = at::zeros({1, 1, 3, 1}, at::kDouble);
  InterpolateKernels::kAten.interpolate_piece(sources, x.to(at::kDouble), y);
  EXPECT_TRUE(y.flatten().narrow(0, 0, 2).equal(at::tensor({1.0, 2.0}, at::kDouble)));
  const at::Tensor dx = at::zeros({1, 1, 4, 1}, at::kDouble);
  InterpolateKernels::kAten.interpolate_piece_adjoint(sources, y, dx);
  EXPECT_EQ(dx.isnan().sum().item<int64_t>(), 1);
}

struct DiceCase {
  DiceTerms terms;
  LossOperands operands;
  Shape shape;
};

DiceCase draw_dice(Draw& draw, at::ScalarType type, int64_t num_spatial) {
  DiceCase c;
  c.shape = draw_image(draw, draw.between(0, 4) ? num_spatial : 0);
  const bool one_channel = c.shape[1] == 1;
  c.terms.activation = static_cast<DiceTerms::Activation>(draw.between(0, one_channel ? 1 : 2));
  c.terms.squared = draw.between(0, 1) == 1;
  c.terms.first_class = one_channel ? 0 : draw.between(0, 1);
  c.operands.scores = any_numbers(draw, c.shape, type);
  if (draw.between(0, 2) == 0) {
    c.operands.target = strided_copy(draw, draw.uniform(c.shape, 0, 1).to(type));
    return c;
  }
  Shape labels = c.shape;
  labels.erase(labels.begin() + 1);
  const at::Tensor drawn = draw.labels(labels, one_channel ? 2 : c.shape[1]);
  c.operands.ignore_index = draw.between(0, 1) ? -100 : 0;
  drawn.masked_fill_(draw.uniform(labels, 0, 1) < 0.2, c.operands.ignore_index);
  c.operands.target = strided_copy(draw, drawn);
  return c;
}

TEST(AtenKernels, Dice) {
  for_many_draws(150, kWideTypes, [](Draw& draw, at::ScalarType type, int64_t num_spatial) {
    const DiceCase c = draw_dice(draw, type, num_spatial);
    expect_near(DiceKernels::kAten.dice_overlaps(c.terms, c.operands),
                DiceKernels::kCpu.dice_overlaps(c.terms, c.operands), 1e-12);
    const at::Tensor pulls = draw.uniform({c.shape[0], c.shape[1] - c.terms.first_class, 2}, -1, 1);
    const Target dx(draw, c.shape, type), right(draw, c.shape, type);
    DiceKernels::kAten.dice_gradient(c.terms, c.operands, pulls, dx);
    DiceKernels::kCpu.dice_gradient(c.terms, c.operands, pulls, right);
    expect_near(dx, right, rounding_of(type));
  });
}

// A pixel that does not count may hold anything.
TEST(AtenKernels, DiceOfIgnoredPixels) {
  LossOperands operands{at::ones({1, 2, 3}, at::kDouble), at::tensor({0, -100, 1}, at::kLong)};
  operands.target = operands.target.view({1, 3});
  operands.scores.select(2, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  for (const auto activation : {DiceTerms::Activation::kSoftmax, DiceTerms::Activation::kSigmoid}) {
    const at::Tensor overlaps = DiceKernels::kAten.dice_overlaps({activation}, operands);
    EXPECT_TRUE(overlaps.isfinite().all().item<bool>());
    const at::Tensor dx = at::empty_like(operands.scores);
    DiceKernels::kAten.dice_gradient({activation}, operands, at::ones({1, 2, 2}, at::kDouble), dx);
    EXPECT_TRUE(dx.isfinite().all().item<bool>());
    EXPECT_TRUE(dx.select(2, 1).equal(at::zeros({1, 2}, at::kDouble)));
  }
}

}  // namespace
}  // namespace tessera::aten_images_test

// Steps of the optimisers and the norm of gradients on a GPU. The steps have the bits of the CPU,
// alone and many at once, wherever runs of numbers begin.

#include "tessera/kernels/optimise.h"

#include <cmath>

#include "tests/gpu/kernels/gpu_views.h"

namespace tessera::gpu_test {
namespace {

using Tensors = std::vector<at::Tensor>;

/// More than one launch takes, of all sizes: empty, one, not a multiple of a vector, many blocks.
std::vector<Shape> draw_shapes(Draw& draw) {
  std::vector<Shape> shapes{{0}, {1}, {40'001}, {3, 8192}};
  for (int64_t more = draw.between(0, 150); more > 0; --more)
    shapes.push_back({draw.between(1, 20), draw.between(1, 70)});
  draw.shuffle(shapes);
  return shapes;
}

/// What lies like the others on the CPU, and on the GPU as a run that begins anywhere.
struct Twins {
  Tensors cpu, gpu;

  void add(Draw& draw, const at::Tensor& numbers, at::ScalarType type) {
    cpu.push_back(numbers.to(type).clone());
    gpu.push_back(run_on_gpu(draw, cpu.back(), type));
  }
  void expect_same_bits() const {
    for (size_t i = 0; i < cpu.size(); ++i) EXPECT_TRUE(gpu[i].cpu().equal(cpu[i])) << i;
  }
};

Twins draw_twins(Draw& draw, const std::vector<Shape>& shapes, at::ScalarType type, double low) {
  Twins twins;
  for (const Shape& shape : shapes)
    twins.add(draw, low == 0 ? at::zeros(shape, at::kDouble) : draw.uniform(shape, low, -low),
              type);
  return twins;
}

TEST(GpuOptimisers, HaveTheBitsOfTheCpu) {
  for (uint64_t seed = 0; seed < 12; ++seed)
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " in " << type);
      Draw draw(seed);
      const std::vector<Shape> shapes = draw_shapes(draw);
      const Twins parameters = draw_twins(draw, shapes, type, -2),
                  velocities = draw_twins(draw, shapes, type, 0),
                  means = draw_twins(draw, shapes, type, 0),
                  squares = draw_twins(draw, shapes, type, 0);
      const bool has_velocity = draw.between(0, 2) > 0, nesterov = draw.between(0, 1) == 1;
      const double decay = 0.01 * static_cast<double>(draw.between(0, 1)),
                   shrink = 0.1 * static_cast<double>(draw.between(0, 1));
      std::vector<AdamStep> steps(
          shapes.size(), {.learning_rate = 0.01, .gradient_decay = decay, .weight_decay = shrink});
      const SgdStep sgd{0.1, has_velocity ? 0.9 : 0, decay, has_velocity && nesterov};
      for (int step = 1; step <= 3; ++step) {
        for (size_t i = 0; i < steps.size(); ++i) steps[i].steps = step + (i % 3 == 0 ? 5 : 0);
        const Twins gradients = draw_twins(draw, shapes, type, -3);
        sgd_steps(sgd, parameters.cpu, gradients.cpu, has_velocity ? velocities.cpu : Tensors{});
        sgd_steps(sgd, parameters.gpu, gradients.gpu, has_velocity ? velocities.gpu : Tensors{});
        parameters.expect_same_bits();
        adam_steps(steps, parameters.cpu, gradients.cpu, means.cpu, squares.cpu);
        adam_steps(steps, parameters.gpu, gradients.gpu, means.gpu, squares.gpu);
      }
      for (const Twins* twins : {&parameters, &velocities, &means, &squares})
        twins->expect_same_bits();
    }
}

TEST(GpuOptimisers, StepOneAlone) {
  Draw draw(3);
  const Twins parameter = draw_twins(draw, {{1001}}, at::kFloat, -2),
              gradient = draw_twins(draw, {{1001}}, at::kFloat, -2),
              mean = draw_twins(draw, {{1001}}, at::kFloat, 0),
              square = draw_twins(draw, {{1001}}, at::kFloat, 0);
  for (const auto lists : {&Twins::cpu, &Twins::gpu}) {
    const at::Tensor &p = (parameter.*lists)[0], &g = (gradient.*lists)[0];
    sgd_step({.learning_rate = 0.1}, p, g, {});
    adam_step({.learning_rate = 0.1, .weight_decay = 0.1}, p, g, (mean.*lists)[0],
              (square.*lists)[0]);
  }
  parameter.expect_same_bits();
}

// Tensors that are no runs go the way of ATen.
TEST(GpuOptimisers, StridedTensors) {
  const auto real = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
  const at::Tensor wide = at::randn({100, 3}, real), gradient = at::randn({100}, real);
  const at::Tensor expected = wide.select(1, 1) - gradient * 0.5;
  sgd_step({.learning_rate = 0.5}, wide.select(1, 1), gradient, {});
  EXPECT_TRUE(wide.select(1, 1).equal(expected));
}

TEST(GpuClip, LikeTheCpu) {
  for (uint64_t seed = 0; seed < 8; ++seed)
    for (const at::ScalarType type : {at::kFloat, at::kDouble})
      for (const double max_norm : {0.0, 0.5, 1e6}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " in " << type << ", " << max_norm);
        Draw draw(seed);
        const Twins gradients = draw_twins(draw, draw_shapes(draw), type, -1);
        const auto clipped = [&](const Tensors& tensors) {
          const at::TensorOptions real = tensors.front().options().dtype(at::kDouble);
          const at::Tensor squares = at::zeros({std::ssize(tensors)}, real);
          const at::Tensor norm = at::full({}, -1, real);
          for (size_t i = 0; i < tensors.size(); ++i)
            sum_of_squares(tensors[i], squares[static_cast<int64_t>(i)]);
          clip_gradients(squares, max_norm, norm, tensors);
          return norm.item<double>();
        };
        const double right = clipped(gradients.cpu);
        EXPECT_NEAR(clipped(gradients.gpu), right, 1e-12 * right);
        for (size_t i = 0; i < gradients.cpu.size(); ++i)
          EXPECT_LE(distance(gradients.gpu[i], gradients.cpu[i].to(at::kDouble)),
                    type == at::kDouble ? 1e-12 : 1e-6);
      }
}

TEST(GpuClip, LeavesGradientsAloneWhereTheNormIsNotFinite) {
  const auto real = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
  const at::Tensor gradient = at::full({5}, 3, real);
  const at::Tensor norm = at::zeros({}, real.dtype(at::kDouble));
  clip_gradients(at::full({1}, std::numeric_limits<double>::infinity(), real.dtype(at::kDouble)), 1,
                 norm, {gradient});
  EXPECT_FALSE(std::isfinite(norm.item<double>()));
  EXPECT_TRUE(gradient.eq(3).all().item<bool>());
}

// The order of the sum depends on nothing but how many numbers there are.
TEST(GpuClip, TheSumDoesNotDependOnWhereARunBegins) {
  Draw draw(9);
  const at::Tensor numbers = draw.uniform({100'003}, -1, 1);
  const auto sum = [&] {
    const at::Tensor result = at::zeros({}, at::TensorOptions(at::kCUDA).dtype(at::kDouble));
    sum_of_squares(run_on_gpu(draw, numbers, at::kFloat), result);
    return result.item<double>();
  };
  const double first = sum();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sum(), first);
}

}  // namespace
}  // namespace tessera::gpu_test

// Initial values are functions of seed, name and global index alone: the same on every rank.

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/graph/graph.h"

namespace tessera::initial_value_test {
namespace {

Parameter uniform(const std::string& name, const Shape& shape, double bound = 1) {
  return {.name = name, .shape = shape, .initial = {Initial::Kind::kUniform, bound}};
}

Parameter given(const at::Tensor& tensor) {
  return {
      .name = "w", .shape = tensor.sizes().vec(), .initial = {Initial::Kind::kGiven, 0, tensor}};
}

TEST(InitialValue, IsAFunctionOfSeedNameAndIndex) {
  const at::Tensor value = initial_value(uniform("conv.weight", {4, 5}, 0.25), 7);
  const RandomKey key = RandomKey(7).with("conv.weight");
  ASSERT_EQ(value.sizes(), (Shape{4, 5}));
  ASSERT_EQ(value.scalar_type(), at::kDouble);
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_EQ(value.view(-1)[i].item<double>(), 0.25 * (2 * key.uniform(i) - 1)) << i;
}

TEST(InitialValue, StaysWhatItWas) {  // runs of earlier versions are repeated with it
  const at::Tensor value = initial_value(uniform("conv.weight", {2}, 0.5), 1);
  EXPECT_EQ(value[0].item<double>(), 0.10838117879643572);
  EXPECT_EQ(value[1].item<double>(), -0.24379020421482878);
}

TEST(InitialValue, DiffersBySeedAndByName) {
  const at::Tensor value = initial_value(uniform("a", {100}), 1);
  EXPECT_TRUE(value.equal(initial_value(uniform("a", {100}), 1)));
  EXPECT_FALSE(value.eq(initial_value(uniform("a", {100}), 2)).any().item<bool>());
  EXPECT_FALSE(value.eq(initial_value(uniform("b", {100}), 1)).any().item<bool>());
}

TEST(InitialValue, FillsItsBounds) {
  const at::Tensor value = initial_value(uniform("w", {100, 100}, 3), 1);
  EXPECT_GE(value.min().item<double>(), -3);
  EXPECT_LT(value.min().item<double>(), -2.99);
  EXPECT_LT(value.max().item<double>(), 3);
  EXPECT_GT(value.max().item<double>(), 2.99);
  EXPECT_NEAR(value.mean().item<double>(), 0, 0.1);  // its deviation: 3 / sqrt(3 * 10^4)
  EXPECT_NEAR(value.square().mean().item<double>(), 3, 0.15);
}

TEST(InitialValue, ANormalOneIsAFunctionOfSeedNameAndIndex) {
  const Parameter parameter{
      .name = "conv.weight", .shape = {300, 200}, .initial = {Initial::Kind::kNormal, 0.5}};
  const at::Tensor value = initial_value(parameter, 7).view(-1);
  const RandomKey key = RandomKey(7).with("conv.weight");
  for (int64_t i : {0, 1, 59'999}) EXPECT_EQ(value[i].item<double>(), 0.5 * key.normal(i)) << i;
  EXPECT_NEAR(value.mean().item<double>(), 0, 0.01);  // its deviation: 0.5 / sqrt(6 * 10^4)
  EXPECT_NEAR(value.std().item<double>(), 0.5, 0.01);
  // Of a normal distribution 68.3% lie within one deviation, and 95.4% within two.
  EXPECT_NEAR(value.abs().lt(0.5).to(at::kDouble).mean().item<double>(), 0.683, 0.01);
  EXPECT_NEAR(value.abs().lt(1).to(at::kDouble).mean().item<double>(), 0.954, 0.01);
}

TEST(InitialValue, AConstantIsTheSameEverywhere) {
  const Parameter parameter{
      .name = "norm.weight", .shape = {3, 2}, .initial = {Initial::Kind::kConstant, 0.75}};
  EXPECT_TRUE(initial_value(parameter, 5).equal(at::full({3, 2}, 0.75, at::kDouble)));
}

TEST(InitialValue, AGivenTensorBecomesDoubleWithoutLoss) {
  const at::Tensor weight = at::tensor({0.1f, -1e-30f, 3e30f});
  const at::Tensor value = initial_value(given(weight), 1);
  EXPECT_EQ(value.scalar_type(), at::kDouble);
  EXPECT_TRUE(value.to(at::kFloat).equal(weight)) << value;
}

TEST(InitialValue, AGivenTensorIsNeverWrittenTo) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor weight = at::ones({4}, type);
    initial_value(given(weight), 1).zero_();
    EXPECT_TRUE(weight.equal(at::ones({4}, type))) << type;
  }
}

}  // namespace
}  // namespace tessera::initial_value_test

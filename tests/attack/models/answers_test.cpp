// What a closed child may answer if a hostile file took it over: recordings of networks, damaged in
// every way. This process builds each, or refuses it.

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/import/recorded_builders.h"
#include "tests/attack/mutation.h"

namespace tessera::answers_test {
namespace {

std::string valid_answer() {
  Recording graph;
  ValueId x = graph.add(AddedInput{"image", {2, 4, 16, 16}});
  Parameter weight{"conv.weight", {6, 4, 3, 3}, ParameterRole::kTrainable, {}};
  weight.initial = {Initial::Kind::kGiven, 0, at::ones({6, 4, 3, 3})};
  graph.add(weight);
  graph.add(AddedAlias{"other.weight", 0});
  ConvolutionOptions conv;
  conv.out_channels = 6;
  conv.kernel = {3, 3};
  conv.padding = {1, 1};
  x = convolution(graph, x, "conv", conv);
  x = batch_norm(graph, x, "bn", {});
  x = pointwise(graph, x, "act", {PointwiseFunction::kLeakyRelu, 0.1, 0});
  const ValueId pooled = max_pool(graph, x, "pool", {{2, 2}});
  InterpolateOptions resize;
  resize.size = {16, 16};
  x = concat(graph, {x, interpolate(graph, pooled, "resize", resize)}, "cat", 1);
  x = slice(graph, x, "part", {.axis = 1, .begin = 2, .end = 10, .step = 2});
  x = pad(graph, x, "pad", {{1, 0}, {1, 2}, PadOptions::Mode::kReflect, 0});
  x = group_norm(graph, x, "gn", {.groups = 2});
  x = adaptive_average_pool(graph, x, "to2", {{2, 2}});
  x = linear(graph, flatten(graph, x), "head", {5, true});
  graph.add(MarkedOutput{x});
  std::string bytes;
  PlainWriter write = writer_to(bytes);
  write_recording(graph, write);
  return bytes;
}

/// One of the numbers of 64 bits becomes another: most of an answer is such numbers.
std::string with_other_number(std::string bytes, attack::Mutation& mutation) {
  const int64_t numbers[] = {0, 1, -1, 2, 7, 1 << 16, 1 << 20, 1ll << 31, 1ll << 40, INT64_MIN};
  const size_t at = 8 * mutation.below(bytes.size() / 8);
  const int64_t value = numbers[mutation.below(10)];
  bytes.replace(at, 8, reinterpret_cast<const char*>(&value), 8);
  return bytes;
}

TEST(Answers, AreBuiltOrRefused) {
  const std::string valid = valid_answer();
  const auto seeds = attack::attack_seeds(4000);
  int64_t built = 0;
  for (uint64_t seed : seeds) {
    SCOPED_TRACE(attack::repeat_with(seed));
    attack::Mutation mutation(seed);
    const std::string bytes =
        mutation.below(2) ? mutation.of(valid) : with_other_number(valid, mutation);
    size_t done = 0;
    PlainReader read = reader_of(bytes, done);
    try {
      read_recording(read, 1 << 20);
      ++built;
    } catch (const InternalError& error) {
      // A name that is taken, say: the caller says that the answer does not hold together.
      EXPECT_NE(std::string(error.what()).find("is taken"), std::string::npos) << error.what();
    } catch (const Error&) {
    }
  }
  std::printf("answers: %zu cases, %lld of them built\n", seeds.size(),
              static_cast<long long>(built));
}

}  // namespace
}  // namespace tessera::answers_test

// What a terminal shows, to the letter.

#include "tessera/simulate/draw_timeline.h"

#include <gtest/gtest.h>

#include "tests/unit/simulate/hand_made.h"

namespace tessera::draw_timeline_test {
namespace {

using namespace hand_made;

std::string drawing(const std::vector<Program>& programs, int width) {
  return draw_timeline(make_timeline(programs, Graph()), width);
}

TEST(DrawTimeline, GivesEveryUnitTheSameNumberOfColumns) {
  EXPECT_EQ(drawing(two_stages(), 40),
            R"(       |0             |5             |10    units
rank 0 000111......<0<<<<222<1<<<<...<2<<<<  25% idle
rank 1 ...000<0<<<<111<1<<<<222<2<<<<......  25% idle
step 12 units, 25.0% idle
000 forward of micro-batch 0, <0< its backward, . idle
)");
}

TEST(DrawTimeline, FitsNarrowTerminals) {
  EXPECT_EQ(drawing(two_stages(), 12),
            R"(       |0           units
rank 0 01..<02<1.<2  25% idle
rank 1 .0<01<12<2..  25% idle
step 12 units, 25.0% idle
000 forward of micro-batch 0, <0< its backward, . idle
)");
}

TEST(DrawTimeline, TellsWeightGradientsApartAndLiftsDigitsToLetters) {
  EXPECT_EQ(
      drawing({program(0, 1, {forward(9), forward(10), backward(9), weight(9), weight(35)})}, 20),
      R"(       |0      |2      |4   units
rank 0 9999aaaa<9<<=9===z==   0% idle
step 5 units, 0.0% idle
000 forward of micro-batch 0, <0< its backward, =0= its weight gradients, . idle
)");
}

TEST(DrawTimeline, CountsSecondsWhereKernelsTakeTime) {
  const Roofline costs({.flops_per_second = 1e5});  // a row takes 0.1 ms
  const std::vector<Program> programs{
      program(0, 2,
              {forward(0), kernel(Phase::kForward, 10), send(1, 1), finish_step(),
               kernel(Phase::kForward, 2), finish(1)}),
      program(1, 2, {forward(0), receive(1, 0), finish(1), kernel(Phase::kForward, 5)})};
  EXPECT_EQ(draw_timeline(make_timeline(programs, graph_of_one_kernel(), costs), 30),
            R"(       |0        |0.5      |1         ms
rank 0 00000000000000000000++++......  20% idle
rank 1 ....................0000000000  67% idle
step 1.5 ms, 43.3% idle
000 forward of micro-batch 0, + set-up and finish, . idle
)");
}

TEST(DrawTimeline, DrawsAStepThatTakesNoTime) {
  EXPECT_EQ(drawing({program(0, 1, {})}, 20), R"(         units
rank 0 .   0% idle
step 0 units, 0.0% idle
000 forward of micro-batch 0, . idle
)");
}

}  // namespace
}  // namespace tessera::draw_timeline_test

#include "tessera/plan/plan.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"

namespace tessera {
namespace {

const ValueType kImage = ValueType::image({2, 3, 16, 20});

void expect_refused(const Plan& plan, const std::string& part) {
  try {
    check_plan(plan, kImage);
    ADD_FAILURE() << to_string(plan) << " passed";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Plan, TakesWhatFits) {
  check_plan({}, kImage);
  check_plan({2, {16, 20}, {}}, kImage);
  check_plan({2, {4, 4}, {4, 5}}, kImage);
}

TEST(Plan, RefusesWhatDoesNot) {
  expect_refused({3, {}, {}}, "use at most 2");
  expect_refused({0, {}, {}}, "data");
  expect_refused({1, {17, 1}, {}}, "16 pixels");
  expect_refused({1, {4, 4}, {5, 1}}, "16 pixels");
  expect_refused({1, {2}, {}}, "2 spatial axes");
  expect_refused({1, {2, 2, 2}, {}}, "2 spatial axes");
  expect_refused({1, {2, 0}, {}}, "space");
  expect_refused({1, {2, -3}, {}}, "space");
  expect_refused({1, {int64_t{1} << 62, 4}, {}}, "space");
}

TEST(Plan, IsAJsonFile) {
  const Plan plan{2, {2, 3}, {1, 4}};
  EXPECT_EQ(plan_from_json(to_json(plan)), plan);
  EXPECT_EQ(plan_from_json("{}"), Plan{});
  for (const char* bad : {"", "[]x", "{\"space\": \"2x2\"}", "{\"rows\": 2}", "{\"data\": [1]}"})
    EXPECT_THROW(plan_from_json(bad), InvalidInput) << bad;
}

}  // namespace
}  // namespace tessera

#include "tessera/files/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/refusal.h"

namespace tessera::json_test {
namespace {

std::string repeated(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

TEST(Json, IsReadAsItIs) {
  const std::string text =
      R"({"b":[1,-2,2.5,true,null,"x",{}],"a":{"c":[[]]},"n":18446744073709551615})";
  EXPECT_EQ(parse_json(text), nlohmann::json::parse(text));
  EXPECT_EQ(parse_json("3"), 3);
  EXPECT_EQ(parse_ordered_json(text).dump(), text) << "the order of the file";
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* bad : {"", "{", "[1,]", "{\"a\":}", "[1] x", "NaN", "[1e999]", "\"\xff\""})
    expect_refusal([&] { parse_json(bad); }, "it is not JSON");
}

TEST(Json, RefusesANameThatOccursTwice) {
  for (const char* bad : {R"({"a":1,"a":2})", R"([{"x":{"a":1,"b":2,"a":3}}])"}) {
    expect_refusal([&] { parse_json(bad); }, "the name \"a\" occurs twice");
    expect_refusal([&] { parse_ordered_json(bad); }, "the name \"a\" occurs twice");
  }
  EXPECT_EQ(parse_json(R"([{"a":1},{"a":2}])").size(), 2u);
}

// Whoever walks or copies a tree of 200,000 levels runs out of stack.
TEST(Json, RefusesTooManyLevels) {
  EXPECT_NO_THROW(parse_json(repeated("[", 64) + repeated("]", 64)));
  expect_refusal([&] { parse_json(repeated("[", 65) + repeated("]", 65)); }, "at most 64 levels");
  expect_refusal([&] { parse_json(repeated("[", 200'000)); }, "at most 64 levels");
  expect_refusal([&] { parse_ordered_json(repeated("{\"a\":", 200'000)); }, "at most 64 levels");
  EXPECT_EQ(parse_json("\"" + repeated("[", 200'000) + "\"").get<std::string>().size(), 200'000u);
}

TEST(Json, RefusesTooManyValues) {
  EXPECT_NO_THROW(parse_json("[1,2]", {.max_values = 3}));
  expect_refusal([&] { parse_json("[1,2,3]", {.max_values = 3}); }, "more than 3 values");
}

// Each of them would take minutes if it were compared with all before it.
TEST(Json, ReadsManyNames) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += fmt::format("{}\"name{}\":{{}}", i ? "," : "", i);
  text += "}";
  EXPECT_EQ(parse_json(text).size(), 200'000u);
  EXPECT_EQ(parse_ordered_json(text).size(), 200'000u);
}

TEST(Json, WholeNumbersAreNothingElse) {
  EXPECT_EQ(whole_number(3, "n", 0, 3), 3);
  EXPECT_EQ(whole_number(-3, "n", -3, 3), -3);
  using nlohmann::json;
  for (const json& bad : {json(4), json(-1), json(2.0), json(true), json("2"), json(),
                          json::array(), json(UINT64_MAX), json(INT64_MIN)})
    expect_refusal([&] { whole_number(bad, "n", 0, 3); }, "\"n\" holds ");
  expect_refusal([&] { whole_number(-7, "n", 0, 3); },
                 "\"n\" holds -7; give a whole number from 0 to 3");
}

TEST(Json, ExcerptsAreShortAndPrintable) {
  EXPECT_EQ(excerpt(nlohmann::json{1, 2}), "[1,2]");
  EXPECT_EQ(excerpt(std::string("a\x1b[1m\n")), "\"a\\u001b[1m\\n\"");
  EXPECT_LT(excerpt(std::string(1 << 20, 'x')).size(), 100u);
}

}  // namespace
}  // namespace tessera::json_test

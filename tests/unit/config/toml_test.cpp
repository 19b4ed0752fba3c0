// What our layer over toml++ gives: types, places in the file, and refusals that say where.

#include "tessera/config/toml.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/refusal.h"

namespace tessera::toml_test {
namespace {

using Array = std::vector<TomlScalar>;

/// The value of `x = text`.
TomlValue value_of(const std::string& text) {
  const std::vector<TomlEntry> entries = parse_toml(fmt::format("x = {}", text), "f");
  EXPECT_EQ(entries.size(), 1u);
  return entries.at(0).value;
}

void expect_error(const std::string& text, const std::string& part) {
  SCOPED_TRACE(text);
  expect_refusal([&] { parse_toml(text, "run.toml"); }, part);
}

std::string repeated(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

// Each level costs stack where the tree is made or taken down.
TEST(Toml, RefusesDepth) {
  expect_error("a = " + repeated("[", 200'000), "run.toml:1:");
  expect_error("a = " + repeated("{b = ", 200'000), "run.toml:1:");
  expect_error("x = 1\n" + repeated("a.", 200'000) + "a = 1",
               "run.toml:2:1: the line has more than");
  expect_error("[" + repeated("a.", 200'000) + "a]", "run.toml:1:1: the line has more than");
  expect_error("[" + repeated("\"=\".", 200'000) + "a]", "run.toml:1:1: the line has more than");
  // Lines that are within the limits, in each other.
  expect_error("a = " + repeated("{" + repeated("b.", 90) + "b = [\n", 200'000), "run.toml:");
}

TEST(Toml, TablesKeysAndPlaces) {
  const std::vector<TomlEntry> entries = parse_toml(
      "# head\r\n"
      "top = 1\n"
      "\n"
      "[ train ]  # about training\n"
      "  steps= 1_000 # many\n"
      "a-b_9\t=\t'x'\n"
      "[data]\n"
      "'\xc3\xa9' = [\n"
      "  2]",
      "f");
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].table, "");
  EXPECT_EQ(entries[1].table, "train");
  EXPECT_EQ(entries[1].key, "steps");
  EXPECT_EQ(entries[1].value, TomlValue(int64_t{1000}));
  EXPECT_EQ(entries[1].key_line, 5);
  EXPECT_EQ(entries[1].key_column, 3);
  EXPECT_EQ(entries[1].value_line, 5);
  EXPECT_EQ(entries[1].value_column, 10);
  EXPECT_EQ(entries[2].key, "a-b_9") << "the order is the file's, not the alphabet's";
  EXPECT_EQ(entries[2].value, TomlValue(std::string("x")));
  EXPECT_EQ(entries[3].table, "data");
  EXPECT_EQ(entries[3].key, "\xc3\xa9");
  EXPECT_EQ(entries[3].key_column, 1);
  EXPECT_EQ(entries[3].value_column, 7) << "columns are characters, not bytes";
}

/// TOML has several ways to say the same; they must not be told apart.
TEST(Toml, OtherWaysToWriteATable) {
  for (const char* text :
       {"[t]\na = 1\nb = 2", "t.a = 1\nt.b = 2", "t = {a = 1, b = 2}", "['t']\n\"a\" = 1\nb = 2"}) {
    SCOPED_TRACE(text);
    const std::vector<TomlEntry> entries = parse_toml(text, "f");
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].table, "t");
    EXPECT_EQ(entries[0].key, "a");
    EXPECT_EQ(entries[1].table, "t");
    EXPECT_EQ(entries[1].value, TomlValue(int64_t{2}));
  }
}

TEST(Toml, TablesInTables) {
  for (const char* text :
       {"[t.u]\na = 1\n[t]\nb = 2", "t.u.a = 1\nt.b = 2", "[t]\nu = {a = 1}\nb = 2"}) {
    SCOPED_TRACE(text);
    const std::vector<TomlEntry> entries = parse_toml(text, "f");
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].table, "t.u");
    EXPECT_EQ(entries[0].key, "a");
    EXPECT_EQ(entries[1].table, "t");
    EXPECT_EQ(entries[1].key, "b");
  }
}

TEST(Toml, EmptyTexts) {
  for (const char* text : {"", "\n", "# only a comment", "\xef\xbb\xbf", "  \t \r\n", "[a]"})
    EXPECT_TRUE(parse_toml(text, "f").empty());
}

TEST(Toml, Numbers) {
  EXPECT_EQ(value_of("-17"), TomlValue(int64_t{-17}));
  EXPECT_EQ(value_of("+1_2_3"), TomlValue(int64_t{123}));
  EXPECT_EQ(value_of("0xff"), TomlValue(int64_t{255}));
  EXPECT_EQ(value_of("9223372036854775807"), TomlValue(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(value_of("-9223372036854775808"), TomlValue(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(value_of("0.1"), TomlValue(0.1));
  EXPECT_EQ(value_of("-1e-3"), TomlValue(-0.001));
  EXPECT_EQ(value_of("6_0.2_5E+1"), TomlValue(602.5));
  EXPECT_EQ(value_of("1.0"), TomlValue(1.0)) << "a float stays one";
}

TEST(Toml, StringsAndBooleans) {
  EXPECT_EQ(value_of(R"("a\"b\\c\td")"), TomlValue(std::string("a\"b\\c\td")));
  EXPECT_EQ(value_of(R"('C:\new#x')"), TomlValue(std::string("C:\\new#x")));
  EXPECT_EQ(value_of(R"("\u00e9\U0001F600")"), TomlValue(std::string("\xc3\xa9\xf0\x9f\x98\x80")));
  EXPECT_EQ(value_of("\"\xc3\xa9\""), TomlValue(std::string("\xc3\xa9")));
  EXPECT_EQ(value_of("\"\""), TomlValue(std::string()));
  EXPECT_EQ(value_of("'''a\nb'''"), TomlValue(std::string("a\nb")));
  EXPECT_EQ(value_of("true"), TomlValue(true));
  EXPECT_EQ(value_of("false # no"), TomlValue(false));
}

TEST(Toml, Arrays) {
  EXPECT_EQ(value_of("[]"), TomlValue(Array{}));
  EXPECT_EQ(value_of("[1, 2,3]"), TomlValue(Array{int64_t{1}, int64_t{2}, int64_t{3}}));
  EXPECT_EQ(value_of("[ # first\n  'a', # second\n\n  \"b\",\n]"),
            TomlValue(Array{std::string("a"), std::string("b")}));
  EXPECT_EQ(value_of("[true, 1.5]"), TomlValue(Array{true, 1.5})) << "who reads it may mind";
}

TEST(Toml, RefusesWhatNoConfigurationHolds) {
  const std::string values = "; values are strings in quotes, numbers, true, false and arrays";
  expect_error("[a.b.c]", "run.toml:1:1: [a.b] c is a table in a table" + values);
  expect_error("[a.b]\nx = 1\n[a.b.c]\ny = 1", "run.toml:3:1: [a.b] c is a table in a table");
  expect_error("a.b.c.d = 1", "[a.b] c is a table in a table");
  expect_error("[a.b]\nc = {d = 1}", "run.toml:2:5: [a.b] c is a table in a table");
  expect_error("[a.'b.c']", "run.toml:1:1: [a] b.c is a table in a table");
  expect_error("[[a]]\nb = 1", "run.toml:1:1: a is an array of tables" + values);
  expect_error("[a]\nb = [{c = 1}]", "run.toml:2:5: [a] b is an array of tables");
  expect_error("a = [1, [2]]", "run.toml:1:9: a is an array in an array");
  expect_error("[t]\na = 2024-05-31", "run.toml:2:5: [t] a is a date or a time" + values);
  expect_error("a = 07:32:00", "run.toml:1:5: a is a date or a time");
  expect_error("a = 1979-05-27T07:32:00Z", "a is a date or a time");
  expect_error("a = [1, 2024-05-31]", "run.toml:1:9: a is a date or a time");
  expect_error("a = inf", "run.toml:1:5: a is inf; give a finite number");
  expect_error("[t]\na = [1.5, -inf]", "run.toml:2:11: [t] a is -inf; give a finite number");
  expect_error("a = nan", "a is nan; give a finite number");
}

TEST(Toml, SyntaxErrorsSayWhere) {
  expect_error("a = 1\nb = \"abc\n", "run.toml:2:9: ");
  expect_error("a = 'x", "run.toml:1:7: ");
  expect_error("a 1", "run.toml:1:3: Error while parsing key-value pair: expected '=', saw '1'");
  expect_error("a =", "run.toml:1:4: ");
  expect_error("a = 1 b = 2", "run.toml:1:7: ");
  expect_error("[a", "run.toml:1:3: ");
  expect_error("= 1", "run.toml:1:1: ");
  expect_error("a = \"\xc3\xa9\xc3\xa9\" x", "run.toml:1:10: ");
  expect_error("\r\na = [1 2]", "run.toml:2:8: ");
  expect_error("a = hello", "run.toml:1:5: ");
  expect_error("a = 9223372036854775808", "'9223372036854775808' is not representable in 64 bits");
  expect_error("a = 1e999", "run.toml:1:");
  expect_error("a = \"\xff\"", "run.toml:1:5: Encountered invalid utf-8 sequence");
}

TEST(Toml, DuplicatesAreErrors) {
  expect_error("[t]\na = 1\nb = 2\na = 3", "run.toml:4:5: ");
  expect_error("[t]\na = 1\nb = 2\na = 3", "cannot redefine existing integer 'a'");
  expect_error("[t]\n[u]\n[t]", "run.toml:3:1: ");
  expect_error("[t]\n[u]\n[t]", "cannot redefine existing table 't'");
  EXPECT_EQ(parse_toml("[t]\na = 1\n[u]\na = 1", "f").size(), 2u);
}

/// A slip of the pen, or a file that is not a text at all, is refused like any other.
TEST(Toml, MalformedFilesDoNotEndTheProgram) {
  for (const char* text : {"1__0",   "_1",       "1_",          "1.",           ".5",      "1e",
                           "-",      "+-1",      "1.e5",        "012",          "-01.5",   "truely",
                           "True",   R"("\q")",  R"("\ud800")", R"("\u12")",    R"("\)",   "[,]",
                           "[1,\n2", "\"\x01\"", "1\rb = 2",    "\"\xc0\xaf\"", "{b = 1,}"})
    EXPECT_NE(refusal([&] { value_of(text); }), "") << text;
  for (const std::string& text : {std::string("[[["), std::string("[[="), std::string("# \x7f"),
                                  std::string("\xc3\xa9 = 1"), std::string("a\0 = 1", 6),
                                  std::string("\x7f"
                                              "ELF\x02"),
                                  std::string("a = ") + std::string(99'999, '[')})
    EXPECT_NE(refusal([&] { parse_toml(text, "f"); }), "") << text.substr(0, 9);
}

}  // namespace
}  // namespace tessera::toml_test

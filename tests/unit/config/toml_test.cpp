// The subset of TOML that we read, and that the rest is refused where it stands.

#include "tessera/config/toml.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/refusal.h"

namespace tessera::toml_test {
namespace {

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

TEST(Toml, TablesKeysAndPlaces) {
  const std::vector<TomlEntry> entries = parse_toml(
      "# head\r\n"
      "top = 1\n"
      "\n"
      "[ train ]  # about training\n"
      "  steps= 1_000 # many\n"
      "a-b_9\t=\t'x'",
      "f");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].table, "");
  EXPECT_EQ(entries[1].table, "train");
  EXPECT_EQ(entries[1].key, "steps");
  EXPECT_EQ(entries[1].value, TomlValue(int64_t{1000}));
  EXPECT_EQ(entries[1].key_line, 5);
  EXPECT_EQ(entries[1].key_column, 3);
  EXPECT_EQ(entries[1].value_column, 10);
  EXPECT_EQ(entries[2].key, "a-b_9");
  EXPECT_EQ(entries[2].value, TomlValue(std::string("x")));
}

TEST(Toml, EmptyTexts) {
  for (const char* text : {"", "\n", "# only a comment", "\xef\xbb\xbf", "  \t \r\n", "[a]"})
    EXPECT_TRUE(parse_toml(text, "f").empty());
}

TEST(Toml, Numbers) {
  EXPECT_EQ(value_of("0"), TomlValue(int64_t{0}));
  EXPECT_EQ(value_of("-17"), TomlValue(int64_t{-17}));
  EXPECT_EQ(value_of("+1_2_3"), TomlValue(int64_t{123}));
  EXPECT_EQ(value_of("9223372036854775807"), TomlValue(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(value_of("-9223372036854775808"), TomlValue(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(value_of("0.1"), TomlValue(0.1));
  EXPECT_EQ(value_of("-1e-3"), TomlValue(-0.001));
  EXPECT_EQ(value_of("6_0.2_5E+1"), TomlValue(602.5));
  EXPECT_EQ(value_of("0e0"), TomlValue(0.0));
  EXPECT_EQ(value_of("1.0"), TomlValue(1.0)) << "a float stays one";
}

TEST(Toml, Strings) {
  EXPECT_EQ(value_of(R"("a\"b\\c\td")"), TomlValue(std::string("a\"b\\c\td")));
  EXPECT_EQ(value_of(R"('C:\new#x')"), TomlValue(std::string("C:\\new#x")));
  EXPECT_EQ(value_of(R"("\u00e9\U0001F600")"), TomlValue(std::string("\xc3\xa9\xf0\x9f\x98\x80")));
  EXPECT_EQ(value_of("\"\xc3\xa9\""), TomlValue(std::string("\xc3\xa9")));
  EXPECT_EQ(value_of("\"\""), TomlValue(std::string()));
  EXPECT_EQ(value_of("true"), TomlValue(true));
  EXPECT_EQ(value_of("false # no"), TomlValue(false));
}

TEST(Toml, Arrays) {
  using Array = std::vector<TomlScalar>;
  EXPECT_EQ(value_of("[]"), TomlValue(Array{}));
  EXPECT_EQ(value_of("[1, 2,3]"), TomlValue(Array{int64_t{1}, int64_t{2}, int64_t{3}}));
  EXPECT_EQ(value_of("[ # first\n  'a', # second\n\n  \"b\",\n]"),
            TomlValue(Array{std::string("a"), std::string("b")}));
  EXPECT_EQ(value_of("[true, 1.5]"), TomlValue(Array{true, 1.5}));
}

TEST(Toml, ErrorsSayWhere) {
  expect_error("a = 1\nb = \"abc\n", "run.toml:2:5: the string does not end; close it with \"");
  expect_error("a = 'x", "run.toml:1:5: the string does not end; close it with '");
  expect_error("a 1", "run.toml:1:3: '1' after the key a; write a = value");
  expect_error("a =", "run.toml:1:4: the end of the file where a value belongs");
  expect_error("a = 1 b = 2", "run.toml:1:7: 'b' after a value");
  expect_error("[a] b = 1", "run.toml:1:5: 'b' after a table's name");
  expect_error("[a", "run.toml:1:3: the end of the file in a table's name");
  expect_error("= 1", "run.toml:1:1: '=' where a key belongs");
  expect_error("\xc3\xa9 = 1", "run.toml:1:1: '\xc3\xa9' where a key belongs");
  expect_error("a = \"\xc3\xa9\xc3\xa9\" x", "run.toml:1:10: 'x' after a value");
  expect_error("a = [1,\n2", "run.toml:1:5: the array does not end");
  expect_error("a = [1 2]", "run.toml:1:8: '2' in an array; put a comma between");
  expect_error("a = [,]", "run.toml:1:6: ',' where a value belongs");
}

TEST(Toml, DuplicatesAreErrors) {
  expect_error("[t]\na = 1\nb = 2\na = 3", "run.toml:4:1: [t] a is given twice, first in line 2");
  expect_error("[t]\n[u]\n[t]", "run.toml:3:1: [t] is given twice, first in line 1");
  EXPECT_EQ(parse_toml("[t]\na = 1\n[u]\na = 1", "f").size(), 2u);
}

TEST(Toml, RefusesTheRestOfTomlByName) {
  expect_error("a.b = 1", "dotted keys are not supported");
  expect_error("\"a\" = 1", "quoted keys are not supported");
  expect_error("[a.b]", "dotted keys are not supported");
  expect_error("[[a]]", "arrays of tables are not supported");
  expect_error("a = {b = 1}", "inline tables are not supported");
  expect_error("a = [[1]]", "arrays in arrays are not supported");
  expect_error("a = \"\"\"x\"\"\"", "multi-line strings are not supported");
  expect_error("a = '''x'''", "multi-line strings are not supported");
  expect_error("a = 0xff", "hexadecimal, octal and binary numbers are not supported");
  expect_error("a = 2024-05-31", "'-' right behind a value");
  expect_error("a = 07:32:00", "begins with 0");
  expect_error("a = inf", "'i' where a value belongs");
  expect_error("a = nan", "'n' where a value belongs");
}

TEST(Toml, RefusesMalformedNumbersAndStrings) {
  for (const char* text : {"1__0", "_1", "1_", "1.", ".5", "1._5", "1e", "1e+", "-", "+-1", "1.e5"})
    EXPECT_NE(refusal([&] { value_of(text); }), "") << text;
  expect_error("a = 012", "begins with 0");
  expect_error("a = -01.5", "begins with 0");
  expect_error("a = 9223372036854775808", "run.toml:1:5: 9223372036854775808 is out of range");
  expect_error("a = 1e999", "out of range");
  expect_error("a = truely", "'l' right behind a value");
  expect_error("a = True", "'T' where a value belongs");
  expect_error("a = hello", "'h' where a value belongs");
  expect_error(R"(a = "\q")", "\\ before 'q'; known escapes");
  expect_error(R"(a = "\ud800")", "d800 is no Unicode character");
  expect_error(R"(a = "\u12")", "give 4 hexadecimal digits");
  expect_error(R"(a = "\)", "\\ before the end of the file");
  expect_error("a = \"\x01\"", "control character 0x01 in a string");
  expect_error("# \x7f", "control character 0x7f in a comment");
  expect_error("a = 1\rb = 2", "control character 0x0d");
  expect_error("a = \"\xff\"", "run.toml:1:6: byte 0xff is not UTF-8");
  expect_error("a = \"\xc0\xaf\"", "byte 0xc0 is not UTF-8");
  expect_error(std::string("a\0 = 1", 6), "control character 0x00");
}

}  // namespace
}  // namespace tessera::toml_test

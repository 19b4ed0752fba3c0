// Profiles as text and as JSON, and the words in them.

#include "tessera/inspect/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tessera/inspect/text.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/inspect/example_graphs.h"

namespace tessera::table_test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> names(const GraphProfile& profiled, const TableOptions& options) {
  std::vector<std::string> names;
  for (size_t i : select_operators(profiled, options)) names.push_back(profiled.operators[i].name);
  return names;
}

using Names = std::vector<std::string>;

/// wide has the most parameters, fine the most FLOPs and bytes.
GraphProfile three_convolutions() {
  Graph graph = image_graph({1, 1, 32, 32});
  ValueId x = convolution(graph, 0, "fine", {.out_channels = 8, .kernel = {5}, .padding = {2}});
  x = convolution(graph, x, "small", {.out_channels = 1, .kernel = {1}, .stride = {8}});
  convolution(graph, x, "wide", {.out_channels = 64, .kernel = {4}, .stride = {4}});
  return profile(graph, at::kFloat);
}

TEST(Table, SelectsAndSorts) {
  const GraphProfile profiled = three_convolutions();
  EXPECT_EQ(names(profiled, {}), (Names{"fine", "small", "wide"}));
  EXPECT_EQ(names(profiled, {SortBy::kParameters}), (Names{"wide", "fine", "small"}));
  EXPECT_EQ(names(profiled, {SortBy::kFlops}), (Names{"fine", "wide", "small"}));
  EXPECT_EQ(names(profiled, {SortBy::kBytes, 1}), (Names{"fine"}));
  // The largest by FLOPs, but in the order of the graph.
  EXPECT_EQ(names(profiled, {SortBy::kOrder, 2}), (Names{"fine", "wide"}));
  EXPECT_EQ(names(profiled, {SortBy::kFlops, 99}).size(), 3u);
}

TEST(Table, ColumnsAreAligned) {
  const std::vector<std::string> lines =
      lines_of(to_table(profile(build_model("unet2d:base=2,depth=2", {1, 3, 32, 32}), at::kFloat)));
  ASSERT_GT(lines.size(), 10u);
  EXPECT_EQ(lines[0].substr(0, 8), "operator");
  EXPECT_EQ(lines[1].substr(0, 10), "enc1.conv1");
  for (size_t i = 1; !lines[i].empty(); ++i)  // the last column is aligned at the right
    EXPECT_EQ(num_characters(lines[i]), num_characters(lines[0])) << lines[i];
}

TEST(Table, SaysWhatItLeavesOut) {
  const GraphProfile profiled = three_convolutions();
  EXPECT_NE(to_table(profiled, {SortBy::kFlops, 1}).find("... and 2 smaller ones"),
            std::string::npos);
  EXPECT_EQ(to_table(profiled).find("... and"), std::string::npos);
  EXPECT_NE(to_table(profiled).find("3 operators"), std::string::npos);
}

TEST(Table, MarksSharedParameters) {
  Graph graph = image_graph({1, 1, 8});
  const ValueId x = convolution(graph, 0, "conv", {1, {1}});
  EXPECT_EQ(to_table(profile(graph, at::kFloat)).find("2*"), std::string::npos);
  convolution(graph, x, "conv", {1, {1}});
  const std::string text = to_table(profile(graph, at::kFloat));
  EXPECT_NE(text.find("2*"), std::string::npos);
  EXPECT_NE(text.find("shared"), std::string::npos);
}

TEST(Table, OfAnEmptyGraph) {
  EXPECT_NE(to_table(profile(image_graph({1, 1, 4}), at::kFloat)).find("0 operators"),
            std::string::npos);
}

TEST(Json, HoldsTheProfile) {
  const GraphProfile profiled = profile(build_model("unet2d:base=2,depth=2"), at::kDouble);
  const nlohmann::json json = nlohmann::json::parse(to_json(profiled));
  EXPECT_EQ(json["dtype"], "float64");
  EXPECT_EQ(json["operators"].size(), profiled.operators.size());
  EXPECT_EQ(json["operators"][0]["name"], "enc1.conv1");
  EXPECT_EQ(json["operators"][0]["output_shape"], (Shape{1, 2, 256, 256}));
  EXPECT_EQ(json["operators"][0]["receptive_field"][0]["pixels"], 3);
  EXPECT_EQ(json["operators"][0]["receptive_field"][0]["whole"], false);
  EXPECT_EQ(json["operators"][0]["halo"][1]["low"], 1);
  EXPECT_EQ(json["totals"]["flops"], profiled.flops);
  EXPECT_EQ(json["totals"]["output_bytes"], profiled.output_bytes);
  EXPECT_EQ(json["kinds"]["max_pool"]["count"], 1);
  EXPECT_EQ(json["kinds"]["max_pool"]["flops"]["median"],
            json["kinds"]["max_pool"]["flops"]["max"]);
  const nlohmann::json short_json = nlohmann::json::parse(to_json(profiled, {SortBy::kFlops, 2}));
  EXPECT_EQ(short_json["operators"].size(), 2u);
  EXPECT_EQ(short_json["totals"], json["totals"]);
}

TEST(Json, TakesAnyName) {
  Graph graph = image_graph({1, 1, 8});
  relu(graph, 0, "bad\xff\"name\n");
  EXPECT_EQ(nlohmann::json::parse(to_json(profile(graph, at::kFloat)))["operators"].size(), 1u);
  const std::string table = to_table(profile(graph, at::kFloat));
  EXPECT_NE(table.find("bad\uFFFD\"name\uFFFD"), std::string::npos);
}

TEST(Text, NumbersWithUnits) {
  EXPECT_EQ(format_flops(0), "0 FLOP");
  EXPECT_EQ(format_flops(999), "999 FLOP");
  EXPECT_EQ(format_flops(1000), "1.00 kFLOP");
  EXPECT_EQ(format_flops(1.234e9), "1.23 GFLOP");
  EXPECT_EQ(format_flops(56.78e9), "56.8 GFLOP");
  EXPECT_EQ(format_flops(999.7e9), "1.00 TFLOP");  // not 1000 GFLOP
  EXPECT_EQ(format_flops(9.996e9), "10.0 GFLOP");
  EXPECT_EQ(format_count(9999), "9999");
  EXPECT_EQ(format_count(10000), "10.0 k");
  EXPECT_EQ(format_count(31'037'698), "31.0 M");
}

TEST(Text, HaloAndField) {
  EXPECT_EQ(to_string(std::vector<HaloAxis>{}), "-");
  EXPECT_EQ(to_string(std::vector<HaloAxis>{{1, 1}, {1, 1}}), "1");
  EXPECT_EQ(to_string(std::vector<HaloAxis>{{3, 2}, {3, 2}}), "-3/+2");
  EXPECT_EQ(to_string(std::vector<HaloAxis>{{0, 0}, {3, 2}}), "0 x -3/+2");
  EXPECT_EQ(to_string(std::vector<HaloAxis>{{4, 5, true}, {3, 3, true}}), "all");
  EXPECT_EQ(to_string(ReceptiveField{}), "-");
  EXPECT_EQ(to_string(ReceptiveField{0, {{{1, 4}, 9}, {{0, 9}, 9}}}), "3xall");
  EXPECT_EQ(to_string(ReceptiveField{0, {{{0, 4}, 9}}}), "≥4");
}

TEST(Text, Printable) {
  EXPECT_EQ(printable("enc1.conv"), "enc1.conv");
  EXPECT_EQ(printable("größe→"), "größe→");
  EXPECT_EQ(printable("a\tb"), "a\uFFFDb");
  EXPECT_EQ(printable("a\x1b[31m"), "a\uFFFD[31m");             // no commands to the terminal
  EXPECT_EQ(printable("\xc3"), "\uFFFD");                       // cut off
  EXPECT_EQ(printable("\xc0\xaf"), "\uFFFD\uFFFD");             // longer than it must be
  EXPECT_EQ(printable("\xed\xa0\x80").substr(0, 3), "\uFFFD");  // a surrogate
  EXPECT_EQ(printable("\xc2\x9b"), "\uFFFD");                   // a control character of two bytes
}

TEST(Text, Shortened) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefghij", 7), "ab…ghij");
  EXPECT_EQ(shortened("ääääöööö", 4), "ä…öö");
  EXPECT_EQ(num_characters(shortened("abcdefghij", 3)), 3);
}

}  // namespace
}  // namespace tessera::table_test

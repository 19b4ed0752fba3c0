// DOT and SVG: every operator once, whatever its name.

#include "tessera/inspect/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tessera/inspect/dot.h"
#include "tessera/inspect/svg.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/inspect/example_graphs.h"
#include "tests/unit/inspect/markup.h"

namespace tessera::drawing_test {
namespace {

size_t count_ids(const std::vector<XmlElement>& elements, const std::string& prefix) {
  std::set<std::string> ids;
  for (const XmlElement& element : elements) {
    const auto id = element.attributes.find("id");
    if (id == element.attributes.end()) continue;
    EXPECT_TRUE(ids.insert(id->second).second) << id->second << " twice";
  }
  return std::ranges::count_if(ids, [&](const std::string& id) { return id.starts_with(prefix); });
}

size_t num_edges(const Graph& graph) {
  size_t edges = 0;
  for (const Node& node : graph.nodes()) edges += node.inputs.size();
  return edges;
}

/// Names that would end a string, a tag, a comment or a CDATA section.
const std::vector<std::string> kHostileNames{"a\"<b>&",
                                             "]]>",
                                             "--><script>alert(1)</script>",
                                             "back\\slash\\",
                                             "\\N\\G",
                                             "tab\there",
                                             "new\nline",
                                             "nul" + std::string(1, '\0'),
                                             "\xff\xfe",
                                             "ünïcode→",
                                             "'single'",
                                             "&amp;already",
                                             "{record|field}",
                                             "a;b->c[d]"};

Graph hostile_graph() {
  Graph graph = image_graph({1, 1, 8, 8});
  ValueId x = 0;
  for (const std::string& name : kHostileNames)
    x = convolution(graph, x, name, {.out_channels = 1, .kernel = {1}, .bias = false});
  return graph;
}

TEST(Svg, IsWellFormedAndHasEveryNodeOnce) {
  for (const Graph& graph :
       {build_model("unet2d:base=2"), build_model("fcn2d:width=0.01"), build_model("cnn3d"),
        residual_graph({1, 3, 32, 32}, 2), dense_graph({1, 3, 32, 32}, 12),
        inception_graph({1, 3, 64, 64}, 3), image_graph({1, 1, 4})}) {
    const std::vector<XmlElement> elements = read_xml(to_svg(graph, {.title = "network"}));
    EXPECT_EQ(elements[0].name, "svg");
    EXPECT_EQ(count_ids(elements, "n"), graph.nodes().size());
    EXPECT_EQ(count_ids(elements, "input"), graph.inputs().size());
  }
}

TEST(Svg, ShowsNameKindAndShape) {
  Graph graph = image_graph({1, 1, 8, 8});
  relu(graph, convolution(graph, 0, "conv1", {.out_channels = 3, .kernel = {1}}), "act1");
  std::set<std::string> texts;
  for (const XmlElement& element : read_xml(to_svg(graph, {.title = "T", .subtitle = "S"})))
    if (element.name == "text") texts.insert(element.text);
  const std::string details = describe(*graph.node(0).op);
  for (const std::string& text :
       {std::string("T"), std::string("S"), std::string("conv1"), std::string("1x3x8x8"), details,
        std::string("act1"), std::string("relu"), std::string("image"), std::string("convolution"),
        std::string("activation")})
    EXPECT_TRUE(texts.contains(text)) << text;
}

TEST(Svg, TakesAnyName) {
  const Graph graph = hostile_graph();
  const std::vector<XmlElement> elements =
      read_xml(to_svg(graph, {.title = kHostileNames[0], .subtitle = kHostileNames[2]}));
  EXPECT_EQ(count_ids(elements, "n"), graph.nodes().size());
  size_t num_scripts = 0, num_found = 0;
  for (const XmlElement& element : elements) {
    num_scripts += element.name == "script";
    num_found += element.name == "text" && element.text == kHostileNames[0];
  }
  EXPECT_EQ(num_scripts, 0u);
  EXPECT_EQ(num_found, 2u);  // the title and the operator
}

TEST(Svg, ColoursAreTheCallers) {
  const Graph graph = vgg_graph({1, 1, 16, 16}, {1, 1});
  DrawingOptions options;
  options.colour_of = [](const Node& node) {
    return node.op->kind() == "convolution" ? "#123456" : "";
  };
  options.legend = {{"rank 0 & 1", "#123456"}};
  size_t num_filled = 0, num_captions = 0;
  for (const XmlElement& element : read_xml(to_svg(graph, options))) {
    const auto fill = element.attributes.find("fill");
    num_filled += fill != element.attributes.end() && fill->second == "#123456";
    num_captions += element.text == "rank 0 & 1";
    EXPECT_NE(element.text, "pooling");  // the families' legend is replaced
  }
  EXPECT_EQ(num_filled, 2u + 1u);  // and the legend's
  EXPECT_EQ(num_captions, 1u);
}

TEST(Dot, HasEveryNodeAndEdgeOnce) {
  for (const Graph& graph : {build_model("unet2d:base=2"), dense_graph({1, 3, 32, 32}, 8),
                             inception_graph({1, 3, 64, 64}, 2), hostile_graph()}) {
    std::set<std::string> nodes;
    size_t edges = 0;
    for (const DotStatement& statement : read_dot(to_dot(graph, {.title = "a\"b"}))) {
      const bool is_edge = statement.words.size() > 2 && statement.words[1] == "-";
      if (is_edge) {
        ++edges;
        EXPECT_TRUE(nodes.contains(statement.words[0]));
        EXPECT_TRUE(nodes.contains(statement.words[3]));
      } else if (statement.words[1] == "[" && statement.words[0] != "node" &&
                 statement.words[0] != "edge") {
        EXPECT_TRUE(nodes.insert(statement.words[0]).second) << statement.words[0];
      }
    }
    EXPECT_EQ(nodes.size(), graph.nodes().size() + graph.inputs().size());
    EXPECT_EQ(edges, num_edges(graph));
  }
}

TEST(Dot, EscapesNames) {
  const std::string text = to_dot(hostile_graph());
  EXPECT_NE(text.find("label=\"a\\\"<b>&\\nconvolution"), std::string::npos);
  EXPECT_NE(text.find("back\\\\slash\\\\\\nconvolution"), std::string::npos);
  EXPECT_NE(text.find("label=\"1x1x8x8\""), std::string::npos);
}

TEST(Dot, DrawsOneEdgePerReading) {
  Graph graph = image_graph({1, 1, 8});
  add(graph, 0, 0, "twice");
  const std::string text = to_dot(graph);
  const std::string edge = "input0 -> n0";
  const size_t first = text.find(edge);
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(text.find(edge, first + 1), std::string::npos);
}

TEST(Families, KnowTheOperatorsOfTheZoo) {
  for (const char* model : {"unet2d:base=2", "fcn2d:width=0.01", "cnn2d"}) {
    const Graph graph = build_model(model);
    for (const Node& node : graph.nodes())
      EXPECT_NE(family_of(*node.op).name, "other") << node.op->kind();
    EXPECT_EQ(family_of(*graph.nodes().back().op).name, "loss");
  }
}

}  // namespace
}  // namespace tessera::drawing_test

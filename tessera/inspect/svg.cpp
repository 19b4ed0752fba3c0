#include "tessera/inspect/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/text.h"
#include "tessera/inspect/graph_layout.h"
#include "tessera/inspect/text.h"

namespace tessera {
namespace {

constexpr double kPageMargin = 32;  // around everything
constexpr double kPadding = 10;     // inside a box
constexpr double kMinBoxWidth = 180, kMaxBoxWidth = 320;
constexpr double kMinWidth = 640;  // of the picture: a narrow graph still has a title

// Fonts differ from machine to machine; these are a wide one's mean widths of a character, in
// pixels, so that text stays inside its box.
constexpr double kNameWidth = 7.9;    // 12 px, bold
constexpr double kDetailWidth = 6.5;  // 11 px
constexpr double kSmallWidth = 6.2;   // 10.5 px
constexpr double kSubtitleWidth = 7.6;

constexpr std::string_view kStyle =
    "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#0f172a}"
    ".title{font-size:20px;font-weight:bold}"
    ".subtitle{font-size:13px;fill:#475569}"
    ".name{font-size:12px;font-weight:bold}"
    ".detail{font-size:11px;fill:#334155}"
    ".small{font-size:10.5px;fill:#334155}"
    ".right{text-anchor:end}"
    ".edge{fill:none;stroke:#94a3b8;stroke-width:1.5;marker-end:url(#arrow)}"
    ".skip{fill:none;stroke:#6366f1;stroke-width:1.6;marker-end:url(#skip-arrow)}"
    ".edge:hover,.skip:hover{stroke-width:3.5}";

double width_of(std::string_view text, double character) {
  return static_cast<double>(num_characters(text)) * character;
}

std::string fitted(const std::string& text, double width, double character) {
  return shortened(text, std::max<int64_t>(3, static_cast<int64_t>(width / character)));
}

/// With one decimal at most: a tenth of a pixel is enough, and files stay small.
std::string number(double value) {
  const double rounded = std::round(value * 10) / 10;
  return rounded == std::round(rounded) ? fmt::format("{:.0f}", rounded + 0.0)
                                        : fmt::format("{:.1f}", rounded);
}

std::string text_at(double x, double y, const char* style, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>", number(x), number(y), style,
                     xml_escaped(text));
}

std::string shape_of(const Node& node) {
  return node.op->is_loss() ? "" : to_string(node.types.output);
}

/// Wide enough for most boxes; what is longer is shortened.
double choose_box_width(const Graph& graph, const GraphLayout& layout) {
  double width = kMinBoxWidth;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    const double name = width_of(printable(node.name), kNameWidth);
    const double details = width_of(describe(*node.op), kDetailWidth);
    const double shape = width_of(shape_of(node), kDetailWidth);
    const double gap = 2 * kPadding;
    width = std::max(
        width, layout.is_light[id] ? name + gap + details : std::max(name + gap + shape, details));
  }
  return std::min(std::ceil(width + 2 * kPadding), kMaxBoxWidth);
}

class SvgWriter {
 public:
  SvgWriter(const Graph& graph, const DrawingOptions& options) : graph_(graph), options_(options) {
    LayoutSizes sizes;
    layout_ = layout_graph(graph, sizes);
    sizes.box_width = choose_box_width(graph, layout_);
    sizes.indent = std::ceil(sizes.box_width * 0.62);
    layout_ = layout_graph(graph, sizes);
    width_ = std::max(kMinWidth, layout_.width + 2 * kPageMargin);
  }

  std::string write() && {
    double y = write_header();
    const double left = (width_ - layout_.width) / 2;
    body_ += fmt::format("<g transform=\"translate({} {})\">\n", number(left), number(y));
    for (const EdgePath& edge : layout_.edges) write_edge(edge);
    for (size_t i = 0; i < layout_.inputs.size(); ++i) write_input(i);
    for (size_t id = 0; id < layout_.nodes.size(); ++id) write_node(static_cast<NodeId>(id));
    body_ += "</g>\n";
    return opening(y + layout_.height + kPageMargin) + body_ + "</svg>\n";
  }

 private:
  std::string opening(double height) const {
    const auto marker = [](const char* id, const char* colour) {
      return fmt::format(
          "<marker id=\"{}\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"8\" "
          "markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
          "<path d=\"M0 .5L8 4L0 7.5z\" fill=\"{}\"/></marker>",
          id, colour);
    };
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\">\n<style>{2}</style>\n<defs>{3}{4}</defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        number(width_), number(height), kStyle, marker("arrow", "#94a3b8"),
        marker("skip-arrow", "#6366f1"));
  }

  /// Title and legend; returns where the graph begins.
  double write_header() {
    double y = kPageMargin;
    if (!options_.title.empty()) {
      const std::string title = fitted(printable(options_.title), width_ - 2 * kPageMargin, 13.5);
      body_ += text_at(kPageMargin, y + 14, "title", title) + "\n";
      y += 28;
    }
    if (!options_.subtitle.empty()) {
      const std::string subtitle =
          fitted(printable(options_.subtitle), width_ - 2 * kPageMargin, kSubtitleWidth);
      body_ += text_at(kPageMargin, y + 10, "subtitle", subtitle) + "\n";
      y += 26;
    }
    return write_legend(y);
  }

  double write_legend(double y) {
    constexpr double kSwatch = 14, kLineHeight = 24;
    double x = kPageMargin;
    for (const Family& entry : legend()) {
      const double width = kSwatch + 6 + width_of(printable(entry.name), kDetailWidth) + 18;
      if (x > kPageMargin && x + width > width_ - kPageMargin) {
        x = kPageMargin;
        y += kLineHeight;
      }
      body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" {}/>",
                           number(x), number(y), kSwatch, kSwatch, paint(entry.fill, entry.stroke));
      body_ += text_at(x + kSwatch + 6, y + 11, "detail", printable(entry.name)) + "\n";
      x += width;
    }
    return y + kLineHeight + 12;
  }

  /// The families that occur, or what the caller's colours mean.
  std::vector<Family> legend() const {
    std::vector<Family> entries;
    for (const LegendEntry& entry : options_.legend)
      entries.push_back({entry.caption, entry.colour, "#475569"});
    if (!entries.empty()) return entries;
    for (const Family& family : families())
      if (std::ranges::any_of(graph_.nodes(), [&](const Node& node) {
            return family_of(*node.op).name == family.name;
          }))
        entries.push_back(family);
    return entries;
  }

  static std::string paint(const std::string& fill, const std::string& stroke) {
    return fmt::format("fill=\"{}\" stroke=\"{}\"", xml_escaped(fill), xml_escaped(stroke));
  }

  void write_edge(const EdgePath& edge) {
    const std::vector<Point>& points = edge.points;
    std::string path = fmt::format("M{} {}", number(points[0].x), number(points[0].y));
    for (size_t i = 1; i + 2 < points.size(); i += 3) {
      const bool is_vertical = points[i - 1].x == points[i].x && points[i].x == points[i + 1].x &&
                               points[i + 1].x == points[i + 2].x;
      if (is_vertical) {
        path += fmt::format("V{}", number(points[i + 2].y));
        continue;
      }
      for (size_t j = i; j < i + 3; ++j)
        path +=
            fmt::format("{}{} {}", j == i ? 'C' : ' ', number(points[j].x), number(points[j].y));
    }
    body_ += fmt::format("<path class=\"{}\" d=\"{}\"><title>{}</title></path>\n",
                         edge.is_skip ? "skip" : "edge", path, xml_escaped(edge_title(edge)));
  }

  std::string edge_title(const EdgePath& edge) const {
    const Value& value = graph_.value(edge.value);
    return printable(fmt::format("{} → {}: {}", value.name, graph_.node(edge.use.node).name,
                                 to_string(value.type)));
  }

  void write_input(size_t index) {
    const Rect& rect = layout_.inputs[index];
    const Value& value = graph_.value(graph_.inputs()[index]);
    body_ += fmt::format(
        "<g id=\"input{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"19\" "
        "fill=\"#f8fafc\" stroke=\"#475569\" stroke-dasharray=\"5 3\"/>",
        index, number(rect.x), number(rect.y), number(rect.width), number(rect.height));
    write_two_lines(rect, 2 * kPadding, value.name, to_string(value.type),
                    value.type.element == Element::kIndex ? "input, labels" : "input");
    body_ += "</g>\n";
  }

  void write_node(NodeId id) {
    const Node& node = graph_.node(id);
    const Rect& rect = layout_.nodes[id];
    const bool is_output = std::ranges::count(graph_.outputs(), node.output) > 0;
    body_ += fmt::format(
        "<g id=\"n{}\"><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
        "rx=\"6\" {}{}/>",
        id, xml_escaped(node_title(node)), number(rect.x), number(rect.y), number(rect.width),
        number(rect.height), paint(fill_of(node, options_), family_of(*node.op).stroke),
        is_output ? " stroke-width=\"2.5\"" : "");
    if (layout_.is_light[id])
      write_one_line(rect, node);
    else
      write_two_lines(rect, kPadding, node.name, shape_of(node), describe(*node.op));
    body_ += "</g>\n";
  }

  std::string node_title(const Node& node) const {
    std::string title = printable(node.name) + "\n" + describe(*node.op);
    if (!shape_of(node).empty()) title += "\n" + shape_of(node);
    int64_t parameters = 0;
    for (ParameterId id : node.parameters) parameters += graph_.parameters()[id].numel();
    if (parameters > 0) title += "\n" + counted(parameters, "parameter");
    return title;
  }

  /// The name and at its right the shape; below them the details.
  void write_two_lines(const Rect& rect, double padding, const std::string& name,
                       const std::string& shape, const std::string& details) {
    const double inner = rect.width - 2 * padding;
    const double shape_width = width_of(shape, kDetailWidth);
    const double x = rect.x + padding;
    body_ += text_at(x, rect.y + 16, "name",
                     fitted(printable(name), inner - shape_width - kPadding, kNameWidth));
    if (!shape.empty())
      body_ += text_at(rect.right() - padding, rect.y + 16, "detail right", shape);
    body_ += text_at(x, rect.y + 31, "detail", fitted(details, inner, kDetailWidth));
  }

  /// The name and at its right the details. The shape is that of the box above.
  void write_one_line(const Rect& rect, const Node& node) {
    const double inner = rect.width - 3 * kPadding;
    const std::string details = fitted(describe(*node.op), inner / 2, kSmallWidth);
    const double left = inner - width_of(details, kSmallWidth);
    body_ += text_at(rect.x + kPadding, rect.y + 14, "small",
                     fitted(printable(node.name), left, kSmallWidth));
    body_ += text_at(rect.right() - kPadding, rect.y + 14, "small right", details);
  }

  const Graph& graph_;
  const DrawingOptions& options_;
  GraphLayout layout_;
  double width_ = 0;
  std::string body_;
};

}  // namespace

std::string to_svg(const Graph& graph, const DrawingOptions& options) {
  return SvgWriter(graph, options).write();
}

}  // namespace tessera

#pragma once
// What drawings of a graph share: the families that operators belong to, each with its colour, and
// the options of a drawing.

#include <functional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct Family {
  std::string name;
  std::string fill;    // "#rrggbb", light: dark text stands on it
  std::string stroke;  // "#rrggbb"
  /// Changes values one by one and keeps the shape: drawn small, below what it belongs to.
  bool is_light = false;
};

/// By the operator's kind; a kind that nobody foresaw is of the family "other".
const Family& family_of(const Op& op);

/// All families, in the order of a legend.
const std::vector<Family>& families();

struct LegendEntry {
  std::string caption;
  std::string colour;
};

struct DrawingOptions {
  std::string title = {};
  std::string subtitle = {};
  /// The fill of an operator, such as the colour of the rank that it is placed on; an empty answer,
  /// or no function, means the colour of its family.
  std::function<std::string(const Node& node)> colour_of = {};
  /// What the colours of `colour_of` mean; empty: the families that are drawn.
  std::vector<LegendEntry> legend = {};
};

/// The fill that the options choose.
std::string fill_of(const Node& node, const DrawingOptions& options);

/// "transposed convolution, 2x2": the kind and the settings of an operator, for people.
std::string describe(const Op& op);

}  // namespace tessera

#include "tessera/inspect/receptive_field.h"

#include <algorithm>

namespace tessera {
namespace {

/// What one walk finds: the part of the image, or nothing.
struct Seen {
  int image = -1;  // position in graph.inputs()
  Box box;
};

Seen merge(const Seen& a, const Seen& b) {
  if (a.image < 0 || b.image < 0) return a.image < 0 ? b : a;
  if (a.image != b.image) return a.image < b.image ? a : b;
  return {a.image, hull(a.box, b.box)};
}

/// A walk from one value visits all its ancestors, so walking from each of n values takes n² steps.
/// Most are saved: where the pixel in the middle reads just the pixels in the middle of its inputs
/// (norms, activations, sums), it sees what they see. One walk per convolution is left, about 0.1 s
/// for a network of 3000 operators.
class Fields {
 public:
  explicit Fields(const Graph& graph) : graph_(graph), seen_(graph.values().size()) {
    for (const Value& value : graph.values()) {
      whole_.push_back(Box::whole(value.type.shape()));
      middle_.push_back(middle_pixel(value.type));
    }
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const ValueId input = graph.inputs()[i];
      if (graph.type(input).element == Element::kReal)
        seen_[input] = {static_cast<int>(i), middle_[input]};
    }
    for (const Node& node : graph.nodes()) {
      const std::vector<Box> needs = needed_boxes(node, middle_[node.output]);
      seen_[node.output] = reads_middles(node, needs) ? merge_inputs(node, needs) : walk(node);
    }
  }

  ReceptiveField field(ValueId value) const {
    const Seen& seen = seen_[value];
    if (seen.image < 0) return {};
    ReceptiveField field{graph_.inputs()[seen.image], {}};
    const ValueType& type = graph_.type(field.image);
    for (int axis = 0; axis < type.num_axes(); ++axis)
      if (type.axes[axis].kind == AxisKind::kSpatial)
        field.axes.push_back({seen.box[axis], type.axes[axis].size});
    return field;
  }

 private:
  /// Per input, inside its value; empty where nothing is read, and for labels.
  std::vector<Box> needed_boxes(const Node& node, const Box& out) const {
    std::vector<Box> boxes;
    for (size_t i = 0; i < node.inputs.size(); ++i) boxes.push_back(needed_box(node, i, out));
    return boxes;
  }

  Box needed_box(const Node& node, size_t input, const Box& out) const {
    if (node.types.inputs[input].element != Element::kReal) return Box{{0, 0}};
    const Box box = node.op->needed(static_cast<int>(input), out, node.types);
    return intersect(box, whole_[node.inputs[input]]);
  }

  bool reads_middles(const Node& node, const std::vector<Box>& needs) const {
    for (size_t i = 0; i < needs.size(); ++i)
      if (!needs[i].empty() && !(needs[i] == middle_[node.inputs[i]])) return false;
    return true;
  }

  Seen merge_inputs(const Node& node, const std::vector<Box>& needs) const {
    Seen seen;
    for (size_t i = 0; i < needs.size(); ++i)
      if (!needs[i].empty()) seen = merge(seen, seen_[node.inputs[i]]);
    return seen;
  }

  /// From the middle of the node's output to the inputs of the graph, against the order of nodes.
  Seen walk(const Node& from) {
    reached_.assign(graph_.values().size(), false);
    boxes_.resize(graph_.values().size());
    reach(from.output, middle_[from.output]);
    for (NodeId id = graph_.value(from.output).producer; id >= 0; --id) {
      const Node& node = graph_.node(id);
      if (!reached_[node.output]) continue;
      for (size_t i = 0; i < node.inputs.size(); ++i)
        reach(node.inputs[i], needed_box(node, i, boxes_[node.output]));
    }
    Seen seen;
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      if (reached_[graph_.inputs()[i]])
        seen = merge(seen, {static_cast<int>(i), boxes_[graph_.inputs()[i]]});
    return seen;
  }

  void reach(ValueId value, const Box& box) {
    if (box.empty()) return;
    boxes_[value] = reached_[value] ? hull(boxes_[value], box) : box;
    reached_[value] = true;
  }

  const Graph& graph_;
  std::vector<Box> whole_;
  std::vector<Box> middle_;
  std::vector<Seen> seen_;
  std::vector<bool> reached_;  // by the walk that is under way
  std::vector<Box> boxes_;
};

}  // namespace

Box middle_pixel(const ValueType& type) {
  Box box;
  for (const Axis& axis : type.axes) {
    const bool is_whole = axis.kind == AxisKind::kChannel || axis.kind == AxisKind::kPart;
    const int64_t middle = axis.size / 2;
    box.push_back(is_whole ? Range{0, axis.size} : Range{middle, middle + 1});
  }
  return box;
}

std::vector<ReceptiveField> receptive_fields(const Graph& graph) {
  const Fields fields(graph);
  std::vector<ReceptiveField> list;
  for (size_t value = 0; value < graph.values().size(); ++value)
    list.push_back(fields.field(static_cast<ValueId>(value)));
  return list;
}

}  // namespace tessera

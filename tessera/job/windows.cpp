#include "tessera/job/windows.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/free_memory.h"
#include "tessera/graph/number_type.h"
#include "tessera/job/forecast.h"

namespace tessera {
namespace {

Shape space_of(const ValueType& type) {
  const Shape shape = type.shape();
  return Shape(shape.begin() + type.first_spatial(), shape.end());
}

/// Where a window that begins at `begin` (per spatial axis of the image) begins in a value.
Box moved_into_image(Box box, const ValueType& type, const Shape& begin) {
  for (int axis = 0; axis < type.num_axes(); ++axis) {
    const Axis& of_value = type.axes[axis];
    if (of_value.kind != AxisKind::kSpatial) continue;
    box[axis] = box[axis].shifted(begin[of_value.spatial_index] * of_value.stride.den /
                                  of_value.stride.num);
  }
  return box;
}

[[noreturn]] void refuse_windows(const std::string& reason) {
  throw_error<InvalidInput>("[windows] {}", reason);
}

void check_node(const Node& whole, const Node& part) {
  if (whole.op->kind() != part.op->kind() || whole.inputs != part.inputs)
    refuse_windows(fmt::format("{} is another operator in an image of another size", whole.name));
  if (whole.op->forward_statistics(whole.types).per_piece > 0)
    refuse_windows(fmt::format("{} takes statistics of the whole image", whole.name));
  if (whole.inputs.empty() || whole.op->depends_on_place())
    refuse_windows(fmt::format("{} depends on the place in the image", whole.name));
  for (size_t i = 0; i <= whole.types.inputs.size(); ++i) {
    const bool is_output = i == whole.types.inputs.size();
    const ValueType& a = is_output ? whole.types.output : whole.types.inputs[i];
    const ValueType& b = is_output ? part.types.output : part.types.inputs[i];
    bool alike = a.num_axes() == b.num_axes();
    for (int axis = 0; alike && axis < a.num_axes(); ++axis)
      alike = a.axes[axis].kind == b.axes[axis].kind && a.axes[axis].stride == b.axes[axis].stride;
    if (!alike)
      refuse_windows(fmt::format("the strides of {} depend on the size of the image", whole.name));
  }
}

void check_alike(const Graph& whole, const Graph& part) {
  if (whole.nodes().size() != part.nodes().size() ||
      whole.parameters().size() != part.parameters().size())
    refuse_windows("the network is another one in an image of another size");
  for (size_t id = 0; id < whole.parameters().size(); ++id)
    if (whole.parameters()[id].shape != part.parameters()[id].shape)
      refuse_windows(
          fmt::format("{} depends on the size of the image", whole.parameters()[id].name));
  for (size_t id = 0; id < whole.nodes().size(); ++id)
    check_node(whole.node(static_cast<NodeId>(id)), part.node(static_cast<NodeId>(id)));
  for (const Graph* graph : {&whole, &part})
    if (space_of(graph->type(graph->outputs()[0])) != space_of(graph->type(graph->inputs()[0])))
      refuse_windows("the output has another size than the image");
}

/// Whether what is kept of a window reads the same in the part as in the whole, operator by
/// operator.
class WindowProof {
 public:
  WindowProof(const Graph& whole, const Graph& part, const ImageWindow& window)
      : whole_(whole), part_(part), boxes_(part.values().size()) {
    for (int axis = 0; axis < window.seen.num_axes(); ++axis)
      begin_.push_back(window.seen[axis].begin);
  }

  bool holds(const ImageWindow& window) {
    const ValueId output = part_.outputs()[0];
    Box kept = Box::whole(part_.type(output).shape());
    for (int axis = 0; axis < window.kept.num_axes(); ++axis)
      kept[axis + 2] = window.kept[axis].shifted(-begin_[axis]);
    reach(output, kept);
    for (NodeId id = static_cast<NodeId>(part_.nodes().size()) - 1; id >= 0; --id) {
      const Node& node = part_.node(id);
      if (boxes_[node.output].num_axes() == 0) continue;
      for (size_t input = 0; input < node.inputs.size(); ++input)
        if (!reads_alike(node, whole_.node(id), static_cast<int>(input))) return false;
    }
    return true;
  }

 private:
  bool reads_alike(const Node& part, const Node& whole, int input) {
    const Box out = boxes_[part.output];
    const ValueType &part_type = part.types.inputs[input], &whole_type = whole.types.inputs[input];
    const Box read = part.op->needed(input, out, part.types);
    const Box in_whole =
        whole.op->needed(input, moved_into_image(out, part.types.output, begin_), whole.types);
    const Box inside = intersect(read, Box::whole(part_type.shape()));
    if (!(moved_into_image(read, part_type, begin_) == in_whole)) return false;
    const Box inside_whole = intersect(in_whole, Box::whole(whole_type.shape()));
    if (inside.empty() && inside_whole.empty()) return true;
    if (!(moved_into_image(inside, part_type, begin_) == inside_whole)) return false;
    reach(part.inputs[input], inside);
    return true;
  }

  void reach(ValueId value, const Box& box) {
    boxes_[value] = boxes_[value].num_axes() == 0 ? box : hull(boxes_[value], box);
  }

  const Graph& whole_;
  const Graph& part_;
  std::vector<Box> boxes_;  // of the values of the part; without axes: not read
  Shape begin_;
};

struct AxisWindow {
  Range seen, kept;
};

/// Along one axis; none where a window of that size keeps too little.
std::vector<AxisWindow> windows_along(int64_t image, int64_t window, int64_t margin, int64_t step) {
  if (window >= image) return {{{0, image}, {0, image}}};
  if (window - 2 * margin < step) return {};
  std::vector<AxisWindow> windows;
  for (int64_t done = 0; done < image;) {
    int64_t begin = std::max<int64_t>(0, (done - margin) / step * step);
    const bool is_last = begin + window >= image;
    if (is_last) begin = image - window;
    const int64_t end = is_last ? image : begin + window - margin;
    windows.push_back({{begin, begin + window}, {done, end}});
    done = end;
  }
  return windows;
}

/// All combinations of the windows along the axes.
std::vector<ImageWindow> combined(const std::vector<std::vector<AxisWindow>>& axes) {
  std::vector<ImageWindow> windows{{}};
  for (const std::vector<AxisWindow>& along : axes) {
    std::vector<ImageWindow> longer;
    for (const ImageWindow& window : windows)
      for (const AxisWindow& each : along) {
        longer.push_back(window);
        longer.back().seen.push_back(each.seen);
        longer.back().kept.push_back(each.kept);
      }
    windows = std::move(longer);
  }
  return windows;
}

/// What the network sees of a turned image: --flips takes the same windows.
ImageWindow mirrored(ImageWindow window, const Shape& image) {
  for (Box* box : {&window.seen, &window.kept})
    for (int axis = 0; axis < box->num_axes(); ++axis)
      (*box)[axis] = {image[axis] - (*box)[axis].end, image[axis] - (*box)[axis].begin};
  return window;
}

/// Windows in the middle are alike; the first and the last two of each axis stand for all.
std::vector<ImageWindow> telling(std::vector<std::vector<AxisWindow>> axes) {
  for (std::vector<AxisWindow>& along : axes)
    if (along.size() > 4) along.erase(along.begin() + 2, along.end() - 2);
  return combined(axes);
}

/// The largest size up to `most` with which the image's end can be the end of a window, and which
/// keeps a step between margins of a step; 0 where there is none.
int64_t fitting_size(int64_t most, int64_t image, int64_t step) {
  if (most >= image) return image;
  const int64_t rest = image % step;
  const int64_t size = most < rest ? 0 : (most - rest) / step * step + rest;
  return size < 3 * step ? 0 : size;
}

Shape largest_window(const Shape& image, const Shape& most, const Shape& steps) {
  Shape window = image;
  for (size_t axis = 0; axis < most.size(); ++axis)
    window[axis] = fitting_size(most[axis], image[axis], steps[axis]);
  return window;
}

/// Half as large along the longest axis.
Shape next_smaller(Shape window, const Shape& image, const Shape& steps) {
  const size_t axis = std::ranges::max_element(window) - window.begin();
  window[axis] = fitting_size(window[axis] / 2, image[axis], steps[axis]);
  return window;
}

/// oneDNN, by which LibTorch convolves, copies images with channels in blocks of so many.
constexpr int64_t kChannelBlock = 16;

/// Bytes that a rank holds at most besides values and parameters: the copies that the largest
/// convolution makes of its image and its result, and classes as eight bytes a pixel.
int64_t bytes_besides_values(const Lowering& lowering, at::ScalarType real) {
  const auto largest_piece = [&](ValueId value, int64_t channel_block) {
    const Layout& layout = lowering.step().placed.values[value].layout;
    int64_t most = 0;
    for (int piece = 0; piece < layout.num_pieces(); ++piece) {
      const Box& box = layout.piece(piece).box;
      const int64_t channels = box[1].size();
      const int64_t pixels = box.volume() / std::max<int64_t>(1, channels);
      most =
          std::max(most, (channels + channel_block - 1) / channel_block * channel_block * pixels);
    }
    return most;
  };
  const Graph& graph = lowering.graph();
  int64_t copied = 0;
  for (const Node& node : graph.nodes())
    if (!node.inputs.empty() && node.op->input_access(0) == InputAccess::kDense)
      copied = std::max(copied, largest_piece(node.inputs[0], kChannelBlock) +
                                    largest_piece(node.output, kChannelBlock));
  const ValueId output = graph.outputs()[0];
  const int64_t pixels = largest_piece(output, 1) / graph.type(output).channels();
  return copied * static_cast<int64_t>(c10::elementSize(wide(real))) +
         pixels * static_cast<int64_t>(sizeof(int64_t));
}

/// Whether a job that fits by its values fits with all that comes besides them, too.
bool fits_with_copies(const Job& job) {
  const Lowering lowering = lower_prediction(job.graph(), job.plan, job.numbers());
  const Forecast forecast = forecast_within_limits(job, lowering, where_ranks_live(job));
  const int64_t besides = bytes_besides_values(lowering, job.real);
  std::vector<int64_t> bytes_of_ranks;
  for (const RankForecast& rank : forecast.ranks) {
    bytes_of_ranks.push_back(rank.arena_bytes + rank.parameter_bytes + besides);
    if (job.memory_limit && bytes_of_ranks.back() > *job.memory_limit) return false;
  }
  return where_ranks_live(job) == Where::kAnywhere ||
         std::ranges::all_of(rooms_of(job, bytes_of_ranks),
                             [](const Room& room) { return room.needed <= room.free; });
}

}  // namespace

Shape window_steps(const Graph& graph) {
  Shape steps(space_of(graph.type(graph.inputs()[0])).size(), 1);
  for (const Value& value : graph.values())
    for (const Axis& axis : value.type.axes)
      if (axis.kind == AxisKind::kSpatial)
        steps[axis.spatial_index] = std::lcm(steps[axis.spatial_index], axis.stride.num);
  return steps;
}

std::vector<ImageWindow> exact_windows(const Graph& whole, const Graph& part) {
  check_alike(whole, part);
  const Shape image = space_of(whole.type(whole.inputs()[0]));
  const Shape window = space_of(part.type(part.inputs()[0])), steps = window_steps(whole);
  for (int64_t times = 1;; times *= 2) {
    std::vector<std::vector<AxisWindow>> axes;
    for (size_t axis = 0; axis < image.size(); ++axis) {
      axes.push_back(windows_along(image[axis], window[axis], times * steps[axis], steps[axis]));
      if (axes.back().empty())
        refuse_windows(
            fmt::format("windows of {} are not larger than what the network sees around "
                        "a pixel, or it sees all of the image",
                        to_string(window)));
    }
    if (std::ranges::all_of(telling(axes), [&](const ImageWindow& each) {
          const ImageWindow turned = mirrored(each, image);
          return WindowProof(whole, part, each).holds(each) &&
                 WindowProof(whole, part, turned).holds(turned);
        }))
      return combined(axes);
  }
}

bool prediction_fits(const Job& job, std::string* reason) {
  try {
    forecast_within_limits(job, lower_prediction(job.graph(), job.plan, job.numbers()),
                           where_ranks_live(job));
    return true;
  } catch (const OutOfMemory& error) {
    *reason = error.what();
    return false;
  }
}

WindowedJob choose_windows(const Job& whole, const Shape& most,
                           const std::function<Job(const Shape&)>& job_for) {
  const ValueType& input = whole.graph().type(whole.graph().inputs()[0]);
  const Graph applied = graph_for_prediction(whole.graph());
  const Shape image = space_of(input), steps = window_steps(applied);
  std::string shortage,
      fault = fmt::format(
          "windows begin on multiples of {}, three times that is their least size, and none that "
          "is small enough is as large",
          to_string(steps));
  std::optional<WindowedJob> fitting;  // the largest that fits by its values
  const bool whole_fits = prediction_fits(whole, &shortage);
  Shape window =
      most.empty() ? next_smaller(image, image, steps) : largest_window(image, most, steps);
  for (; *std::ranges::min_element(window) >= 1; window = next_smaller(window, image, steps)) {
    Shape image_shape = window;
    image_shape.insert(image_shape.begin(), input.channels());
    try {
      Job job = job_for(image_shape);
      std::vector<ImageWindow> windows = exact_windows(applied, graph_for_prediction(job.graph()));
      if (!prediction_fits(job, &shortage)) continue;
      if (fits_with_copies(job)) return {std::move(job), std::move(windows)};
      if (!fitting) fitting = WindowedJob{std::move(job), std::move(windows)};
    } catch (const InvalidInput& error) {
      fault = error.what();
      break;
    }
  }
  if (fitting) return std::move(*fitting);
  if (whole_fits)
    throw_error<InvalidInput>("[--window] an image of {} cannot be predicted by parts: {}",
                              to_string(image), fault);
  throw_error<OutOfMemory>("{}; an image of {} cannot be predicted by parts either: {}", shortage,
                           to_string(image), fault);
}

}  // namespace tessera

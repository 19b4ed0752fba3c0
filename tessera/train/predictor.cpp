#include "tessera/train/predictor.h"

#include "tessera/base/error.h"
#include "tessera/graph/transform.h"
#include "tessera/kernels/classes.h"
#include "tessera/lower/inference.h"

namespace tessera {
namespace {

constexpr int kFirstSpatial = 2;  // of images and of outputs: batch and channels come first

/// The spatial ranges of `box`, from its axis `first` on, moved by the window's place.
Box moved_to(const ImageWindow& window, Box box, int first) {
  for (int axis = first; axis < box.num_axes(); ++axis)
    box[axis] = box[axis].shifted(window.seen[axis - first].begin);
  return box;
}

/// All of it is seen and all of the output kept, whose size may be another.
ImageWindow whole_image(const Graph& graph) {
  const auto space = [](const ValueType& type) {
    const Box whole = Box::whole(type.shape());
    Box result;
    for (int axis = kFirstSpatial; axis < whole.num_axes(); ++axis) result.push_back(whole[axis]);
    return result;
  };
  return {space(graph.type(graph.inputs()[0])), space(graph.type(graph.outputs()[0]))};
}

at::Tensor probabilities_of(const at::Tensor& logits) {
  return logits.size(1) == 1 ? at::sigmoid(logits) : at::softmax(logits, 1);
}

void add_probabilities(const PieceTensors& logits, PieceTensors* sums) {
  for (const auto& [piece, tensor] : logits) {
    const at::Tensor probabilities = probabilities_of(tensor);
    if (const auto [sum, is_new] = sums->try_emplace(piece, probabilities); !is_new)
      sum->second.add_(probabilities);
  }
}

void add(PieceTensors* sums, const PieceTensors& parts) {
  for (const auto& [piece, tensor] : parts) sums->at(piece).add_(tensor);
}

void divide(PieceTensors* sums, double by) {
  for (auto& [piece, tensor] : *sums) tensor.div_(by);
}

}  // namespace

Graph graph_for_prediction(const Graph& graph) {
  return prune(for_inference(graph), Losses::kDrop);
}

Lowering lower_prediction(const Graph& graph, const Plan& plan, const Numbers& numbers) {
  LowerOptions options;
  options.step = StepKind::kForward;
  options.keep_outputs = true;
  options.real = numbers.type;
  options.device = numbers.device;
  return Lowering(graph_for_prediction(graph), plan, options);
}

at::Tensor classes_of_logits(const at::Tensor& logits) {
  return logits.size(1) == 1 ? logits.squeeze(1).gt(0).to(at::kLong)
                             : classes_with_largest_score(logits);
}

at::Tensor classes_of_probabilities(const at::Tensor& probabilities) {
  return probabilities.size(1) == 1 ? probabilities.squeeze(1).gt(0.5).to(at::kLong)
                                    : classes_with_largest_score(probabilities);
}

Predictor::Predictor(const Lowering& lowering, Program program, ParameterStore* parameters,
                     Transport* transport, at::ScalarType real)
    : lowering_(lowering),
      transport_(transport),
      executor_(lowering.graph(), std::move(program), parameters, transport, {real}) {}

int64_t Predictor::batch_size() const {
  const Graph& graph = lowering_.graph();
  return graph.type(graph.inputs()[0]).batch();
}

int64_t Predictor::num_batches(const Dataset& data) const {
  return (data.size() + batch_size() - 1) / batch_size();
}

const Layout& Predictor::output_layout() const {
  return lowering_.step().placed.values[lowering_.graph().outputs()[0]].layout;
}

/// One pass over the window, turned along `axes`; the output turned back.
PieceTensors Predictor::see(const Dataset& data, int64_t batch, const ImageWindow& window,
                            FlippedAxes axes) {
  const Graph& graph = lowering_.graph();
  const Shape input = graph.type(graph.inputs()[0]).shape();
  StepContext context;
  context.load = [&](ValueId, const Box& box, at::Tensor target) {
    const Box turned_box = mirrored(box, input, kFirstSpatial, axes);
    const Box image_box = moved_to(window, without_axis(turned_box, 0), 1);
    const at::Tensor part = axes == 0 ? target : at::empty(box.shape(), target.options());
    for (int64_t entry = box[0].begin; entry < box[0].end; ++entry) {
      const int64_t sample = std::min(batch * batch_size() + entry, data.size() - 1);
      data.load_image(sample, image_box, part.select(0, entry - box[0].begin));
    }
    if (axes != 0) target.copy_(turned(part, kFirstSpatial, axes));
  };
  executor_.run(context);
  const Layout& layout = output_layout();
  PieceTensors raw;
  for (const Result& output : executor_.program().outputs) {
    if (output.value != graph.outputs()[0]) continue;
    for (int piece : layout.pieces_of(transport_->rank()))
      if (layout.piece(piece).box == output.view.box) raw[piece] = executor_.result(output);
  }
  return axes == 0 ? raw : turn_back(layout, kFirstSpatial, axes, raw, *transport_);
}

Predictor::Outputs Predictor::see_from_all_sides(const Dataset& data, int64_t batch,
                                                 const ImageWindow& window,
                                                 const PredictOptions& options) {
  Outputs mean{see(data, batch, window, 0), {}};
  if (options.probabilities) add_probabilities(mean.raw, &mean.probabilities);
  if (!options.flips) return mean;
  for (auto& [piece, tensor] : mean.raw) tensor = tensor.clone();  // the executor's, until it runs
  const FlippedAxes sides = 1u << window.seen.num_axes();
  for (FlippedAxes axes = 1; axes < sides; ++axes) {
    const PieceTensors raw = see(data, batch, window, axes);
    add(&mean.raw, raw);
    if (options.probabilities) add_probabilities(raw, &mean.probabilities);
  }
  divide(&mean.raw, sides);
  divide(&mean.probabilities, sides);
  return mean;
}

/// What is kept of a piece of the output, in coordinates of the whole output; it may be empty.
Box Predictor::kept_box(int piece, const ImageWindow& window) const {
  Box box = moved_to(window, output_layout().piece(piece).box, kFirstSpatial);
  for (int axis = kFirstSpatial; axis < box.num_axes(); ++axis)
    box[axis] = intersect(box[axis], window.kept[axis - kFirstSpatial]);
  return box;
}

void Predictor::run_batch(const Dataset& data, int64_t batch, const PredictOptions& options,
                          const TakePrediction& take, const AfterWindow& after_window) {
  const Graph& graph = lowering_.graph();
  const Layout& layout = output_layout();
  std::vector<ImageWindow> windows = options.windows;
  if (windows.empty()) windows.push_back(whole_image(graph));
  for (const ImageWindow& window : windows) {
    const Outputs outputs = see_from_all_sides(data, batch, window, options);
    std::vector<Piece> all_kept;
    for (int piece = 0; piece < layout.num_pieces(); ++piece) {
      const Box kept = kept_box(piece, window);
      if (kept.empty()) continue;
      all_kept.push_back({kept, layout.piece(piece).rank});
      if (layout.piece(piece).rank != transport_->rank()) continue;
      const Box own = moved_to(window, layout.piece(piece).box, kFirstSpatial);
      PredictedBox predicted{Operand{outputs.raw.at(piece), own}.view(kept), {}};
      if (options.probabilities)
        predicted.probabilities = Operand{outputs.probabilities.at(piece), own}.view(kept);
      take(batch, kept, predicted);
    }
    if (after_window) after_window(all_kept);
  }
}

}  // namespace tessera

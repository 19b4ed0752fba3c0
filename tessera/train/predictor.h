#pragma once
// Applies a trained network to every sample of a data set: each rank computes its own boxes and
// hands them to the caller, and no rank ever holds the whole image.
//
// Example, on every rank:
//   const Lowering lowering = lower_prediction(graph, plan, at::kFloat);
//   Program program = lowering.program(rank);
//   ParameterStore parameters(graph, program.parameters, seed, at::kFloat);
//   load_weights("w.safetensors", graph, parameters.values());
//   Predictor predictor(lowering, std::move(program), &parameters, &transport, at::kFloat);
//   for (int64_t batch = 0; batch < predictor.num_batches(*data); ++batch)
//     predictor.run_batch(*data, batch, {}, take);

#include <functional>

#include "tessera/data/dataset.h"
#include "tessera/graph/number_type.h"
#include "tessera/lower/lower.h"
#include "tessera/runtime/executor.h"
#include "tessera/train/flips.h"

namespace tessera {

/// A part of an image that the network sees at once, and what is kept of its output there.
struct ImageWindow {
  Box seen;  // of the image's space, as large as the network's input
  Box kept;  // of the output's space, which is the image's; inside `seen`
};

struct PredictOptions {
  /// Empty: an image is seen whole. Windows are for outputs of the image's size.
  std::vector<ImageWindow> windows = {};
  /// Outputs are means over the image and all that it becomes by turning it round: 4 of a 2-D
  /// image.
  bool flips = false;
  bool probabilities = false;  // wanted
};

/// Batch x channels x space.
struct PredictedBox {
  at::Tensor raw;            // the first output as it is
  at::Tensor probabilities;  // by softmax, or of one channel by the logistic function
};

/// Takes what was predicted for a box of one batch, in coordinates of the whole output.
using TakePrediction =
    std::function<void(int64_t batch, const Box& box, const PredictedBox& predicted)>;

/// Called on all ranks when a window is done, with what each of them has kept of it.
using AfterWindow = std::function<void(const std::vector<Piece>& kept)>;

/// The graph that a prediction runs: with running statistics, and without losses.
Graph graph_for_prediction(const Graph& graph);
/// Its forward step.
Lowering lower_prediction(const Graph& graph, const Plan& plan, const Numbers& numbers);

/// The most probable class of each pixel, int64; one channel tells two classes apart: yes where it
/// is positive, or its probability above a half.
at::Tensor classes_of_logits(const at::Tensor& logits);
at::Tensor classes_of_probabilities(const at::Tensor& probabilities);

class Predictor {
 public:
  /// All but the program outlive it.
  Predictor(const Lowering& lowering, Program program, ParameterStore* parameters,
            Transport* transport, at::ScalarType real);

  Transport& transport() const { return *transport_; }
  int64_t batch_size() const;
  int64_t num_batches(const Dataset& data) const;
  /// Collective over all ranks. Labels are not read.
  void run_batch(const Dataset& data, int64_t batch, const PredictOptions& options,
                 const TakePrediction& take, const AfterWindow& after_window = {});

 private:
  struct Outputs {
    PieceTensors raw, probabilities;
  };
  PieceTensors see(const Dataset& data, int64_t batch, const ImageWindow& window, FlippedAxes axes);
  Outputs see_from_all_sides(const Dataset& data, int64_t batch, const ImageWindow& window,
                             const PredictOptions& options);
  const Layout& output_layout() const;
  Box kept_box(int piece, const ImageWindow& window) const;

  const Lowering& lowering_;
  Transport* transport_;
  Executor executor_;
};

}  // namespace tessera

#include "tessera/train/label_maps.h"

#include "tessera/train/collect.h"

namespace tessera {

void predict_label_maps(Predictor& predictor, const Dataset& data, int64_t batch,
                        const PredictOptions& options, const Shape& output_space,
                        const TakePrediction& boxes, const TakeLabelMap& take) {
  Transport& transport = predictor.transport();
  Shape shape = output_space;
  shape.insert(shape.begin(), predictor.batch_size());
  const bool is_first = transport.rank() == 0;
  const at::Tensor maps = is_first ? at::empty(shape, at::kLong) : at::Tensor();
  std::vector<at::Tensor> own;  // of the window that is under way, in the order of its pieces
  const auto keep = [&](int64_t number, const Box& box, const PredictedBox& predicted) {
    own.push_back(options.probabilities ? classes_of_probabilities(predicted.probabilities)
                                        : classes_of_logits(predicted.raw));
    boxes(number, box, predicted);
  };
  const auto collect = [&](const std::vector<Piece>& kept) {
    std::vector<HeldTensor> tensors;
    size_t next_own = 0;
    for (const Piece& piece : kept)
      tensors.push_back({{piece.rank},
                         without_axis(piece.box, 1).shape(),
                         at::kLong,
                         piece.rank == transport.rank() ? own[next_own++] : at::Tensor()});
    const std::vector<at::Tensor> collected = collect_on_first(transport, tensors);
    for (size_t i = 0; i < collected.size(); ++i)
      Operand{maps, Box::whole(shape)}.view(without_axis(kept[i].box, 1)).copy_(collected[i]);
    own.clear();
  };
  predictor.run_batch(data, batch, options, keep, collect);
  if (!is_first) return;
  const int64_t first = batch * predictor.batch_size();
  for (int64_t sample = first; sample < std::min(first + predictor.batch_size(), data.size());
       ++sample)
    take(sample, maps[sample - first]);
}

}  // namespace tessera

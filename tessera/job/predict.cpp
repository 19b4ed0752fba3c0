#include "tessera/job/predict.h"

#include <filesystem>
#include <memory>

#include "tessera/base/error.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/comm/together.h"
#include "tessera/data/array_sink.h"
#include "tessera/job/forecast.h"
#include "tessera/train/predictor.h"
#include "tessera/train/training_job.h"

namespace tessera {
namespace {

/// One channel tells two classes apart: yes where it is positive.
at::Tensor classes_of(const at::Tensor& logits) {
  return logits.size(1) == 1 ? logits.squeeze(1).gt(0).to(at::kLong) : logits.argmax(1);
}

at::Tensor probabilities_of(const at::Tensor& logits) {
  return logits.size(1) == 1 ? at::sigmoid(logits) : at::softmax(logits, 1);
}

/// Weights from a safetensors file, or from a checkpoint folder of `tessera train`, into the values
/// that this rank holds.
void load_parameters(const std::string& path, const LoadedModel& loaded,
                     std::vector<at::Tensor>& values) {
  const Graph& graph = loaded.graph;
  if (path.empty()) return;  // a model file brings its own
  if (path.ends_with(".safetensors") || std::filesystem::is_regular_file(path))
    return load_weights(path, graph, values, loaded.ties);
  const TrainingState state = CheckpointStore(path, 1).load(path);
  check_fits(graph, state, path);
  std::map<std::string, at::Tensor> model = tensors_under(state, "model.");
  // A run with --ema was validated by its averages.
  for (const auto& [name, average] : tensors_under(state, "optimiser.ema.")) model[name] = average;
  for (size_t id = 0; id < graph.parameters().size(); ++id)
    if (values[id].defined()) values[id].copy_(model.at(graph.parameters()[id].name));
}

/// A file that all ranks write together: rank 0 creates and commits, the others join in. What
/// cannot be written on one rank fails on all; in the middle of the prediction ranks do not meet,
/// so a complaint waits for its end.
class SharedFile {
 public:
  SharedFile(const std::string& path, PixelType type, const Shape& shape, Transport& transport)
      : transport_(transport) {
    if (path.empty()) return;
    const bool is_first = transport.rank() == 0;
    const ArrayInfo info{.shape = shape, .type = type};
    do_together(transport, [&] {
      if (is_first) writer_ = create_array_writer(path, info);
    });
    const std::string name = broadcast_text(transport, is_first ? writer_->temporary_name() : "");
    do_together(transport, [&] {
      if (!is_first) writer_ = join_array_writer(path, name, info);
    });
  }
  bool wanted() const { return writer_ != nullptr; }
  void write(const Box& box, const at::Tensor& tensor) {
    if (!complaint_.empty()) return;
    try {
      write_tensor(*writer_, box, tensor);
    } catch (const InvalidInput& error) {
      complaint_ = error.what();
    }
  }
  void finish() {
    if (!wanted()) return;
    fail_together(transport_, complaint_);
    do_together(transport_, [&] { writer_->flush(); });
    do_together(transport_, [&] { writer_->finish_part(transport_.rank(), transport_.size()); });
    do_together(transport_, [&] {
      if (transport_.rank() == 0) writer_->commit();
    });
  }

 private:
  Transport& transport_;
  std::unique_ptr<ArrayWriter> writer_;  // null: the file is not wanted
  std::string complaint_;
};

void predict_rank(const PredictRequest& request, const Job& job, const Lowering& lowering,
                  const Dataset& data, Transport& transport) {
  Program program = lowering.program(transport.rank());
  ParameterStore parameters(job.graph(), program.parameters, job.seed, job.real);
  do_together(transport, [&] { load_parameters(request.weights, job.model, parameters.values()); });
  const Graph& graph = lowering.graph();
  Shape shape = graph.type(graph.outputs()[0]).shape();
  const int64_t batch_size = shape[0], classes = shape[1];
  shape[0] = data.size();
  Shape class_shape = shape;
  class_shape.erase(class_shape.begin() + 1);
  SharedFile class_maps(request.classes, classes <= 256 ? PixelType::kUint8 : PixelType::kInt64,
                        class_shape, transport);
  SharedFile raw(request.raw, job.real == at::kDouble ? PixelType::kFloat64 : PixelType::kFloat32,
                 shape, transport);
  SharedFile probabilities(request.probabilities, PixelType::kFloat32, shape, transport);
  predict(lowering, std::move(program), data, &parameters, &transport, job.real,
          [&](int64_t batch, Box box, const at::Tensor& logits) {
            box[0] = box[0].shifted(batch * batch_size);
            const int64_t kept = std::min(box[0].end, data.size()) - box[0].begin;
            if (kept <= 0) return;
            box[0].end = box[0].begin + kept;
            const at::Tensor own = logits.narrow(0, 0, kept);
            if (class_maps.wanted()) class_maps.write(without_axis(box, 1), classes_of(own));
            if (raw.wanted()) raw.write(box, own);
            if (probabilities.wanted())
              probabilities.write(box, probabilities_of(own.to(at::kFloat)));
          });
  class_maps.finish();
  raw.finish();
  probabilities.finish();
}

}  // namespace

void predict(const Job& job, const Dataset& data, const PredictRequest& request) {
  if (request.weights.empty() && job.model.file.empty())
    throw_error<InvalidInput>(
        "[--weights] a zoo model has none of its own; give a safetensors file or a checkpoint");
  if (request.classes.empty() && request.raw.empty() && request.probabilities.empty())
    throw_error<InvalidInput>(
        "[--output] give it, --probabilities or --raw, or there is no result");
  check_image_shape(job.graph(), data);
  const Lowering lowering = lower_prediction(job.graph(), job.plan, job.real);
  forecast_within_limits(job, lowering, where_ranks_live(job));
  run_on_ranks(job.plan.num_ranks(), job.launch, [&](Transport& transport) {
    predict_rank(request, job, lowering, data, transport);
  });
}

}  // namespace tessera

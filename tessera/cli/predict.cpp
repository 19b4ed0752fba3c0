#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/cli/command.h"
#include "tessera/cli/job_options.h"
#include "tessera/comm/collectives.h"
#include "tessera/data/npy.h"
#include "tessera/data/npy_writer.h"
#include "tessera/data/open.h"
#include "tessera/data/picture.h"
#include "tessera/data/png.h"
#include "tessera/job/launch.h"
#include "tessera/lower/halo_report.h"
#include "tessera/train/predictor.h"

namespace tessera::cli {
namespace predict_command {

constexpr int64_t kMaxPicturePixels = 4096 * 4096;

struct Options {
  JobOptions job;
  std::string weights;
  std::string images;
  std::string output;
  std::string probabilities;
  std::string raw;
  std::string picture;
};

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
  if (path.ends_with(".safetensors")) return load_weights(path, graph, values, loaded.ties);
  const TrainingState state = CheckpointStore(path, 1).load(path);
  check_fits(graph, state);
  const std::map<std::string, at::Tensor> model = tensors_under(state, "model.");
  for (size_t id = 0; id < graph.parameters().size(); ++id)
    if (values[id].defined()) values[id].copy_(model.at(graph.parameters()[id].name));
}

/// The files that all ranks write together: rank 0 creates and commits, the others join in.
class SharedFile {
 public:
  SharedFile(const std::string& path, NpyType type, const Shape& shape, Transport& transport,
             const Group& everyone)
      : transport_(transport), everyone_(everyone) {
    if (path.empty()) return;
    if (transport.rank() == 0) writer_ = NpyWriter::create(path, type, shape);
    barrier(transport, everyone);
    if (transport.rank() != 0) writer_ = NpyWriter::attach(path);
  }
  void write(const Box& box, const at::Tensor& tensor) {
    if (writer_) writer_->write(box, tensor);
  }
  void finish() {
    if (!writer_) return;
    writer_->flush();
    barrier(transport_, everyone_);
    if (transport_.rank() == 0) writer_->commit();
  }

 private:
  Transport& transport_;
  const Group& everyone_;
  std::unique_ptr<NpyWriter> writer_;
};

Box without_axis(const Box& box, int left_out) {
  Box result;
  for (int axis = 0; axis < box.num_axes(); ++axis)
    if (axis != left_out) result.push_back(box[axis]);
  return result;
}

void predict_rank(const Options& options, const Job& job, const Lowered& lowered,
                  const Dataset& data, Transport& transport) {
  Group everyone;
  for (int rank = 0; rank < transport.size(); ++rank) everyone.push_back(rank);
  ParameterStore parameters(job.graph(), lowered.programs.at(transport.rank()).parameters,
                            options.job.seed, job.real);
  load_parameters(options.weights, job.model, parameters.values());
  Shape shape = lowered.graph.type(lowered.graph.outputs()[0]).shape();
  const int64_t batch_size = shape[0], classes = shape[1];
  shape[0] = data.size();
  Shape class_shape = shape;
  class_shape.erase(class_shape.begin() + 1);
  SharedFile class_maps(options.output, classes <= 256 ? NpyType::kUint8 : NpyType::kInt64,
                        class_shape, transport, everyone);
  SharedFile raw(options.raw, job.real == at::kDouble ? NpyType::kFloat64 : NpyType::kFloat32,
                 shape, transport, everyone);
  SharedFile probabilities(options.probabilities, NpyType::kFloat32, shape, transport, everyone);
  predict(lowered, data, &parameters, &transport, job.real,
          [&](int64_t batch, Box box, const at::Tensor& logits) {
            box[0] = box[0].shifted(batch * batch_size);
            const int64_t kept = std::min(box[0].end, data.size()) - box[0].begin;
            if (kept <= 0) return;
            box[0].end = box[0].begin + kept;
            const at::Tensor own = logits.narrow(0, 0, kept);
            if (!options.output.empty()) class_maps.write(without_axis(box, 1), classes_of(own));
            if (!options.raw.empty()) raw.write(box, own);
            if (!options.probabilities.empty())
              probabilities.write(box, probabilities_of(own.to(at::kFloat)));
          });
  class_maps.finish();
  raw.finish();
  probabilities.finish();
}

void check_picture(const Shape& sample, const ValueType& output) {
  const Shape shape = output.shape();
  if (shape.size() == 4 && !std::equal(sample.begin() + 1, sample.end(), shape.begin() + 2))
    throw_error<InvalidInput>("[--picture] the class map {} has another size than the image {}",
                              to_string(shape), to_string(sample));
  if (sample.size() != 3 || sample[1] * sample[2] > kMaxPicturePixels)
    throw_error<InvalidInput>("[--picture] pictures are for 2-D images of at most {} pixels",
                              kMaxPicturePixels);
}

/// The first image, its labels where the data has them per pixel, and what was predicted, with the
/// workers' boxes.
void draw_first_sample(const Options& options, const Job& job, const Dataset& data) {
  const Shape shape = data.image_shape();
  const Box all = Box::whole(shape), plane = without_axis(all, 0);
  at::Tensor image = at::empty(shape, at::kFloat);
  data.load_image(0, all, image);
  std::vector<Panel> panels{{"image", picture_of(image)}};
  at::Tensor labels = at::empty(plane.shape(), at::kLong);
  if (data.per_pixel() && job.graph().type(job.graph().outputs()[0]).num_spatial() == 2) {
    data.load_target(0, plane, labels);
    panels.push_back({"truth", picture_of_classes(labels)});
    NpyArray(options.output).read({{0, 1}, plane[0], plane[1]}, labels.unsqueeze(0));
    panels.push_back({"prediction", picture_of_classes(labels)});
  }
  PanelOptions drawing;
  drawing.zoom = std::max<int64_t>(1, 256 / std::max(shape[1], shape[2]));
  const Layout layout = input_layout(job.graph(), job.plan);
  for (const Piece& piece : layout.pieces())
    if (piece.box[0].begin == 0) drawing.boxes.push_back({piece.box[2], piece.box[3]});
  write_png(options.picture, side_by_side(panels, drawing).image());
}

int run(const Options& options) {
  const Job job = resolve(options.job);
  if (options.weights.empty() && job.model.file.empty())
    throw_error<InvalidInput>(
        "[--weights] a zoo model has none of its own; give a safetensors file or a checkpoint");
  if (options.output.empty() && options.raw.empty() && options.probabilities.empty())
    throw_error<InvalidInput>(
        "[--output] give it, --probabilities or --raw, or there is no result");
  if (!options.picture.empty() && options.output.empty())
    throw_error<InvalidInput>("[--picture] draws the class maps; give --output, too");
  Shape sample = job.graph().type(job.graph().inputs()[0]).shape();
  sample.erase(sample.begin());
  const std::unique_ptr<Dataset> data = open_dataset(options.images, sample, options.job.seed);
  const Lowered lowered = lower_prediction(job.graph(), job.plan);
  const LaunchRequest request = launch_request(options.job, job);
  forecast_within_limits(job, lowered, 0, where_ranks_live(request));
  if (!options.picture.empty()) check_picture(sample, job.graph().type(job.graph().outputs()[0]));
  const int code = run_on_ranks(request, [&](Transport& transport) {
    predict_rank(options, job, lowered, *data, transport);
    if (transport.rank() != 0) return;
    if (!options.picture.empty()) draw_first_sample(options, job, *data);
    for (const std::string& file : {options.output, options.probabilities, options.raw})
      if (!file.empty()) fmt::print("{} samples -> {}\n", data->size(), file);
  });
  return code;
}

}  // namespace predict_command

void add_predict(CLI::App& app, int* exit_code) {
  using namespace predict_command;
  CLI::App* command = app.add_subcommand(
      "predict", "applies a trained model to images; writes class maps and probabilities as .npy");
  auto options = std::make_shared<Options>();
  options->job.add_to(*command, "float32");
  command
      ->add_option("--weights", options->weights,
                   "safetensors file, or a checkpoint folder of `tessera train` (default: those of "
                   "the model file)")
      ->group("Files");
  command->add_option("--images", options->images, "npy:images.npy,targets.npy or synthetic:...")
      ->required()
      ->group("Files");
  command->add_option("--output", options->output, "class maps: N x space (.npy)")->group("Files");
  command->add_option("--probabilities", options->probabilities, "N x classes x space (.npy)")
      ->group("Files");
  command
      ->add_option("--raw", options->raw, "the first output as it is: N x channels x space (.npy)")
      ->group("Files");
  command->add_option("--picture", options->picture, "the first 2-D image and its classes (.png)")
      ->group("Files");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tessera::cli

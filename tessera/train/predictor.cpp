#include "tessera/train/predictor.h"

#include "tessera/graph/transform.h"
#include "tessera/lower/inference.h"

namespace tessera {

Lowering lower_prediction(const Graph& graph, const Plan& plan, at::ScalarType real) {
  LowerOptions options;
  options.step = StepKind::kForward;
  options.keep_outputs = true;
  options.real = real;
  return Lowering(prune(for_inference(graph), Losses::kDrop), plan, options);
}

void predict(const Lowering& lowering, Program program, const Dataset& data,
             ParameterStore* parameters, Transport* transport, at::ScalarType real,
             const TakeLogits& take) {
  const Graph& graph = lowering.graph();
  Executor executor(graph, std::move(program), parameters, transport, {real});
  const int64_t batch_size = graph.type(graph.inputs()[0]).batch();
  for (int64_t batch = 0; batch * batch_size < data.size(); ++batch) {
    StepContext context;
    context.load = [&](ValueId, const Box& box, at::Tensor target) {
      Box sample_box;
      for (int axis = 1; axis < box.num_axes(); ++axis) sample_box.push_back(box[axis]);
      for (int64_t entry = box[0].begin; entry < box[0].end; ++entry) {
        const int64_t sample = std::min(batch * batch_size + entry, data.size() - 1);
        data.load_image(sample, sample_box, target.select(0, entry - box[0].begin));
      }
    };
    executor.run(context);
    for (const Result& output : executor.program().outputs)
      if (output.value == graph.outputs()[0]) take(batch, output.view.box, executor.result(output));
  }
}

}  // namespace tessera

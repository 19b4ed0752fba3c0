#include "tessera/import/builder_options.h"
#include "tessera/import/recording.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/max_unpool.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/ops/shape/flatten.h"
#include "tessera/ops/shape/unit_axes.h"

namespace tessera {
namespace {

template <class Options>
Options options_of(const BuilderCall& call) {
  size_t done = 0;
  PlainReader read = reader_of(call.options, done, "options are missing");
  Options options;
  fields(read, options);
  if (done != call.options.size()) throw_error<InvalidInput>("there are too many options");
  return options;
}

void check_num_inputs(const BuilderCall& call, size_t wanted) {
  if (call.inputs.size() != wanted)
    throw_error<InvalidInput>("{} inputs where {} are due", call.inputs.size(), wanted);
}

/// Of most builders: one input, and options.
template <class Options>
ValueId build_one(ValueId (*builder)(Graph&, ValueId, const std::string&, const Options&),
                  Graph& graph, const BuilderCall& call) {
  check_num_inputs(call, 1);
  return builder(graph, call.inputs[0], call.name, options_of<Options>(call));
}

ValueId build_along_axis(ValueId (*builder)(Graph&, ValueId, const std::string&, int), Graph& graph,
                         const BuilderCall& call) {
  check_num_inputs(call, 1);
  return builder(graph, call.inputs[0], call.name, options_of<AxisOptions>(call).axis);
}

}  // namespace

ValueId build(Graph& graph, const BuilderCall& call) {
  switch (call.builder) {
    case Builder::kAdaptiveAveragePool:
      return build_one<AdaptivePoolOptions>(&adaptive_average_pool, graph, call);
    case Builder::kAdaptiveMaxPool:
      return build_one<AdaptivePoolOptions>(&adaptive_max_pool, graph, call);
    case Builder::kAmax:
      return build_one<AmaxOptions>(&amax, graph, call);
    case Builder::kArithmetic:
      check_num_inputs(call, 2);
      return arithmetic(graph, call.inputs[0], call.inputs[1], call.name,
                        options_of<ArithmeticOptions>(call).how);
    case Builder::kArithmeticWithParameter: {
      check_num_inputs(call, 1);
      const auto options = options_of<ParameterArithmeticOptions>(call);
      return arithmetic_with_parameter(graph, call.inputs[0], call.name, options.how,
                                       options.operand);
    }
    case Builder::kAveragePool:
      return build_one<PoolOptions>(&average_pool, graph, call);
    case Builder::kBatchNorm:
      return build_one<BatchNormOptions>(&batch_norm, graph, call);
    case Builder::kChannelReduction:
      return build_one<ChannelReductionOptions>(&channel_reduction, graph, call);
    case Builder::kConcat:
      if (call.inputs.empty()) throw_error<InvalidInput>("nothing is joined");
      return concat(graph, call.inputs, call.name, options_of<AxisOptions>(call).axis);
    case Builder::kContract:
      check_num_inputs(call, 2);
      return contract(graph, call.inputs[0], call.inputs[1], call.name,
                      options_of<Arrangement>(call));
    case Builder::kConvolution:
      return build_one<ConvolutionOptions>(&convolution, graph, call);
    case Builder::kDropout:
      return build_one<DropoutOptions>(&dropout, graph, call);
    case Builder::kFlatten:
      check_num_inputs(call, 1);
      return flatten(graph, call.inputs[0]);
    case Builder::kGroupNorm:
      return build_one<GroupNormOptions>(&group_norm, graph, call);
    case Builder::kInstanceNorm:
      return build_one<InstanceNormOptions>(&instance_norm, graph, call);
    case Builder::kInterpolate:
      return build_one<InterpolateOptions>(&interpolate, graph, call);
    case Builder::kLayerNorm:
      return build_one<LayerNormOptions>(&layer_norm, graph, call);
    case Builder::kLinear:
      return build_one<LinearOptions>(&linear, graph, call);
    case Builder::kMaxPool:
      return build_one<PoolOptions>(&max_pool, graph, call);
    case Builder::kMaxUnpool:
      check_num_inputs(call, 2);
      return max_unpool(graph, call.inputs[0], call.inputs[1], call.name,
                        options_of<PoolOptions>(call));
    case Builder::kPad:
      return build_one<PadOptions>(&pad, graph, call);
    case Builder::kPointwise:
      return build_one<PointwiseOptions>(&pointwise, graph, call);
    case Builder::kPrelu:
      return build_one<PreluOptions>(&prelu, graph, call);
    case Builder::kRearrange:
      return build_one<Arrangement>(&rearrange, graph, call);
    case Builder::kRelu:
      check_num_inputs(call, 1);
      return relu(graph, call.inputs[0], call.name);
    case Builder::kSlice:
      return build_one<SliceOptions>(&slice, graph, call);
    case Builder::kSoftmax:
      return build_one<SoftmaxOptions>(&softmax, graph, call);
    case Builder::kSpatialReduction:
      return build_one<SpatialReductionOptions>(&spatial_reduction, graph, call);
    case Builder::kSqueeze:
      return build_along_axis(&squeeze, graph, call);
    case Builder::kTransposedConvolution:
      return build_one<TransposedConvolutionOptions>(&transposed_convolution, graph, call);
    case Builder::kUnsqueeze:
      return build_along_axis(&unsqueeze, graph, call);
  }
  TESSERA_CHECK(false, "builder {}", static_cast<int>(call.builder));
}

}  // namespace tessera

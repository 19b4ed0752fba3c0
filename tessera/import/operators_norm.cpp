#include <fmt/format.h>

#include <algorithm>

#include "tessera/import/arrange.h"
#include "tessera/import/operators.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/norm/instance_norm.h"
#include "tessera/ops/norm/layer_norm.h"
#include "tessera/ops/pointwise/dropout.h"

namespace tessera {
namespace {

constexpr auto kBuffer = ParameterRole::kBuffer;

/// Norms take weight and bias both, or neither.
bool has_affine(Call& call) {
  if (call.has("weight") != call.has("bias"))
    call.refuse("has a weight without a bias, or a bias without a weight; use affine=True");
  return call.has("weight");
}

bool has_running(Call& call) {
  if (call.has("running_mean") != call.has("running_var"))
    call.refuse("has a running mean without a running variance, or the reverse");
  return call.has("running_mean");
}

std::string bind_norm(Call& call, const std::string& kind) {
  return call.bind_weights(kind, {{"weight", call.weight("weight")},
                                  {"bias", call.weight("bias")},
                                  {"running_mean", call.weight("running_mean"), kBuffer},
                                  {"running_var", call.weight("running_var"), kBuffer}});
}

Symbols import_batch_norm(Call& call) {
  const ValueId x = call.image("input");
  BatchNormOptions options;
  options.epsilon = call.real("eps");
  options.momentum = call.real("momentum");
  options.affine = has_affine(call);
  options.running = has_running(call);
  const bool training = call.flag("training");
  if (!training && !options.running)
    call.refuse("normalises by running statistics, which it does not have");
  if (!training) options.statistics = BatchNormOptions::Statistics::kRunning;
  return call.result(batch_norm(call.graph(), x, bind_norm(call, "batch_norm"), options));
}

Symbols import_instance_norm(Call& call) {
  const ValueId x = call.image("input");
  InstanceNormOptions options;
  options.epsilon = call.real("eps");
  options.momentum = call.real("momentum");
  options.affine = has_affine(call);
  options.track_running = has_running(call);
  if (!call.flag("use_input_stats")) options.statistics = InstanceNormOptions::Statistics::kRunning;
  return call.result(instance_norm(call.graph(), x, bind_norm(call, "instance_norm"), options));
}

Symbols import_group_norm(Call& call) {
  const ValueId x = call.image("input");
  GroupNormOptions options;
  options.groups = call.integer("num_groups");
  options.epsilon = call.real("eps");
  options.affine = has_affine(call);
  const std::string name = call.bind_weights(
      "group_norm", {{"weight", call.weight("weight")}, {"bias", call.weight("bias")}});
  return call.result(group_norm(call.graph(), x, name, options));
}

Symbols import_layer_norm(Call& call) {
  const TensorPointer x = call.tensor("input");
  const Shape shape = x->view.shape();
  const std::vector<int64_t> over = call.integers("normalized_shape");
  LayerNormOptions options;
  options.epsilon = call.real("eps");
  options.affine = has_affine(call);
  const bool is_sample = over.size() >= 2 && over.size() + 1 == shape.size() &&
                         std::equal(over.begin(), over.end(), shape.begin() + 1);
  if (is_sample) {
    call.image(*x);
    options.over = LayerNormOptions::Over::kSample;
  } else if (over.size() == 1 && over[0] == shape.back()) {
    bring_alone_to_channels(call.graph(), *x, x->view.num_axes() - 1, call.name("rearrange"));
    options.over = LayerNormOptions::Over::kChannels;
  } else {
    call.refuse(
        "normalises over the last axis (channels last, tokens, or batch x features), or over "
        "channels and all of space; not over a part of the space");
  }
  const std::string name = call.bind_weights(
      "layer_norm", {{"weight", call.weight("weight")}, {"bias", call.weight("bias")}});
  return call.result(layer_norm(call.graph(), x->value, name, options), x->view);
}

/// A dropout that does nothing gives its input back, as PyTorch does.
Symbols import_dropout_form(Call& call, DropoutOptions options) {
  const TensorPointer x = call.tensor(call.in_place() ? "self" : "input");
  options.probability = call.real("p");
  if (!call.flag("train") || options.probability == 0) return {x};
  if (options.unit == DropoutOptions::Unit::kChannel &&
      !x->view.is_whole(1, 1, call.type(x->value).shape()))
    call.image(*x);
  return call.result(dropout(call.graph(), x->value, call.name("dropout"), options), x->view);
}

Operator dropout_form(const std::string& name, const std::string& becomes,
                      const DropoutOptions& options) {
  return {{name}, becomes, [options](Call& call) { return import_dropout_form(call, options); }};
}

}  // namespace

std::vector<Operator> norm_operators() {
  using Unit = DropoutOptions::Unit;
  using Form = DropoutOptions::Form;
  return {{{"aten::batch_norm"},
           "batch norm over the whole batch and image however they are cut; with and without "
           "affine weights and running statistics",
           import_batch_norm},
          {{"aten::instance_norm"},
           "instance norm, with and without running statistics",
           import_instance_norm},
          {{"aten::group_norm"}, "group norm", import_group_norm},
          {{"aten::layer_norm"},
           "layer norm over the last axis (channels last, tokens, features), or over channels and "
           "all of space",
           import_layer_norm},
          dropout_form("aten::dropout", "dropout by global index; nothing in eval mode", {}),
          dropout_form("aten::feature_dropout", "dropout of whole channels; nothing in eval mode",
                       {.unit = Unit::kChannel}),
          dropout_form("aten::alpha_dropout", "alpha dropout; nothing in eval mode",
                       {.form = Form::kAlpha}),
          dropout_form("aten::feature_alpha_dropout",
                       "alpha dropout of whole channels; nothing in eval mode",
                       {.unit = Unit::kChannel, .form = Form::kAlpha})};
}

}  // namespace tessera

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/import/operators.h"
#include "tessera/import/repeat.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/ops/shape/pad.h"
#include "tessera/ops/shape/pixel_shuffle.h"

namespace tessera {
namespace {

/// The scale factors of the .vec form come as one list, those of the traced one by axis.
std::vector<double> scales_of(Call& call, int num_spatial) {
  if (call.has("scale_factors")) return call.reals("scale_factors");
  const std::vector<std::vector<std::string>> by_axis{
      {"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}};
  std::vector<double> scales;
  for (const std::string& name : by_axis[num_spatial - 1])
    if (call.has(name)) scales.push_back(call.real(name));
  return static_cast<int>(scales.size()) == num_spatial ? scales : std::vector<double>{};
}

Symbols import_resize(Call& call, InterpolationMode mode) {
  const ValueId x = call.image(call.has("input") ? "input" : "self");
  const int num_spatial = call.type(x).num_spatial();
  if (num_spatial < 1) call.refuse("resizes a tensor without space");
  InterpolateOptions options;
  options.mode = mode;
  if (call.has("align_corners") && call.flag("align_corners")) options.corners = Corners::kAligned;
  if (call.has("output_size")) options.size = call.integers("output_size");
  options.scale = scales_of(call, num_spatial);
  for (const size_t count : {options.size.size(), options.scale.size()})
    if (count != 0 && count != static_cast<size_t>(num_spatial))
      call.refuse(fmt::format("has {} sizes or scales for {}", count,
                              counted(num_spatial, "spatial axis", "spatial axes")));
  if (!options.size.empty() && !options.scale.empty()) {
    // The size was computed from the scale, and coordinates go by the scale.
    const Shape shape = call.type(x).shape();
    for (int i = 0; i < num_spatial; ++i)
      if (options.size[i] !=
          static_cast<int64_t>(static_cast<double>(shape[2 + i]) * options.scale[i]))
        call.refuse("has a size and scales that do not fit each other for this input");
    options.size.clear();
  }
  return call.result(interpolate(call.graph(), x, call.name("resize"), options));
}

Operator resize(const std::vector<std::string>& names, const std::string& becomes,
                InterpolationMode mode) {
  return {names, becomes, [mode](Call& call) { return import_resize(call, mode); }};
}

PadOptions::Mode pad_mode(Call& call, const std::string& mode) {
  using Mode = PadOptions::Mode;
  if (mode == "constant") return Mode::kConstant;
  if (mode == "reflect") return Mode::kReflect;
  if (mode == "replicate") return Mode::kReplicate;
  if (mode == "circular") return Mode::kCircular;
  call.refuse("mode '" + mode + "' is none of constant, reflect, replicate, circular");
}

/// PyTorch lists the pads from the last axis to the first, low before high. A tensor whose axes the
/// code sees in another order is padded as it lies.
Symbols pad_with(Call& call, PadOptions::Mode mode, double value) {
  const TensorPointer x = call.tensor("self");
  if (!x->view.order(call.type(x->value).shape())) call.image(*x);
  const ValueType& type = call.type(x->value);
  const std::vector<int> order = *x->view.order(type.shape());
  const std::vector<int64_t> pads =
      call.items("pad").empty() ? std::vector<int64_t>{} : call.window_numbers("pad");
  if (pads.size() % 2 != 0) call.refuse("has an odd number of pads");
  if (pads.size() > 2 * order.size())
    call.refuse(
        fmt::format("has {} pads for {}", pads.size(), counted(std::ssize(order), "axis", "axes")));
  const int first = type.first_spatial();
  PadOptions options;
  options.mode = mode;
  options.value = value;
  options.low.assign(type.num_spatial(), 0);
  options.high.assign(type.num_spatial(), 0);
  int64_t channels_low = 0, channels_high = 0;
  bool pads_space = false;
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const int64_t low = pads[2 * i], high = pads[2 * i + 1];
    if (low == 0 && high == 0) continue;
    const int axis = order[order.size() - 1 - i];
    if (axis == 0) call.refuse("pads the batch; pad channels and space");
    pads_space = pads_space || axis >= first;
    (axis < first ? channels_low : options.low[axis - first]) = low;
    (axis < first ? channels_high : options.high[axis - first]) = high;
  }
  const bool pads_channels = channels_low != 0 || channels_high != 0;
  if (pads_channels && mode != PadOptions::Mode::kConstant)
    call.refuse("pads channels by their own values; Tessera pads them with numbers");
  if (!pads_space && !pads_channels) return {make_tensor(x->value, x->view)};
  ValueId padded = x->value;
  if (pads_space) padded = pad(call.graph(), padded, call.name("pad"), options);
  padded = pad_channels(call, padded, channels_low, channels_high, value);
  return call.result(padded, CodeView::plain(call.type(padded).shape()).permuted(order));
}

Symbols import_pad(Call& call) {
  const double value = call.has("value") ? call.real("value") : 0;
  return pad_with(call, pad_mode(call, call.text("mode")), value);
}

Symbols import_constant_pad(Call& call) {
  return pad_with(call, PadOptions::Mode::kConstant, call.has("value") ? call.real("value") : 0);
}

Symbols import_padding_layer(Call& call, PadOptions::Mode mode) {
  // These name their pads "padding".
  const ValueId x = call.image("self");
  const std::vector<int64_t> pads = call.window_numbers("padding");
  const int num_spatial = call.type(x).num_spatial();
  if (pads.size() != 2 * static_cast<size_t>(num_spatial))
    call.refuse(fmt::format("has {} pads for {} spatial axes", pads.size(), num_spatial));
  PadOptions options;
  options.mode = mode;
  for (int i = num_spatial - 1; i >= 0; --i) {  // PyTorch begins at the last axis
    options.low.push_back(pads[2 * i]);
    options.high.push_back(pads[2 * i + 1]);
  }
  return call.result(pad(call.graph(), x, call.name("pad"), options));
}

/// The code sees the axes as the output of an arrangement.
Symbols rearranged(Call& call, const Arrangement& arrangement) {
  const TensorPointer x = call.tensor("self");
  Shape apart;
  std::vector<int> place(arrangement.sizes.size());
  for (const std::vector<int>& axis : arrangement.from[0])
    for (int letter : axis) {
      place[letter] = static_cast<int>(apart.size());
      apart.push_back(arrangement.sizes[letter]);
    }
  const std::optional<CodeView> view = x->view.reshaped(apart);
  if (!view)
    call.refuse(fmt::format("takes {} apart as {}", to_string(x->view.shape()), to_string(apart)));
  std::vector<ViewDigits> axes;
  for (const std::vector<int>& letters : arrangement.to) {
    ViewDigits& axis = axes.emplace_back();
    for (int letter : letters)
      axis.insert(axis.end(), (*view)[place[letter]].begin(), (*view)[place[letter]].end());
  }
  return {make_tensor(x->value, CodeView(std::move(axes)))};
}

using ArrangementOf = Arrangement (*)(const Shape&, const std::string&, int64_t);
Operator shuffler(const std::string& words, const std::string& factor, ArrangementOf arrangement) {
  std::string kind = words;
  std::replace(kind.begin(), kind.end(), ' ', '_');
  return {{"aten::" + kind}, words, [=](Call& call) {
            const Shape shape = call.tensor("self")->view.shape();
            return rearranged(call, arrangement(shape, call.name(kind), call.integer(factor)));
          }};
}

}  // namespace

std::vector<Operator> resize_operators() {
  using Mode = InterpolationMode;
  const std::string by = ", by size or by scale";
  return {
      resize({"aten::upsample_nearest1d", "aten::upsample_nearest2d", "aten::upsample_nearest3d"},
             "interpolation to the nearest pixel" + by, Mode::kNearest),
      resize({"aten::_upsample_nearest_exact1d", "aten::_upsample_nearest_exact2d",
              "aten::_upsample_nearest_exact3d"},
             "interpolation, nearest-exact" + by, Mode::kNearestExact),
      resize({"aten::upsample_linear1d", "aten::upsample_bilinear2d", "aten::upsample_trilinear3d"},
             "linear interpolation, both align_corners" + by, Mode::kLinear),
      resize({"aten::upsample_bicubic2d"}, "bicubic interpolation, both align_corners" + by,
             Mode::kCubic),
      {{"aten::pad"},
       "padding: constant (negative: crop; also of channels), reflect, replicate, circular",
       import_pad},
      {{"aten::constant_pad_nd"},
       "constant padding of space and channels, or a crop",
       import_constant_pad},
      {{"aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d"},
       "reflecting padding",
       [](Call& call) { return import_padding_layer(call, PadOptions::Mode::kReflect); }},
      {{"aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d"},
       "replicating padding",
       [](Call& call) { return import_padding_layer(call, PadOptions::Mode::kReplicate); }},
      shuffler("pixel shuffle", "upscale_factor", pixel_shuffle_of),
      shuffler("pixel unshuffle", "downscale_factor", pixel_unshuffle_of),
      shuffler("channel shuffle", "groups", channel_shuffle_of)};
}

}  // namespace tessera

#include "tessera/ops/pool/adaptive_geometry.h"

#include "tessera/base/error.h"

namespace tessera {

std::string AdaptiveGeometry::settings() const { return "size " + to_string(options_.size); }

ValueType AdaptiveGeometry::infer_type(const ValueType& input) const {
  const int num_spatial = input.num_spatial(), first = input.first_spatial();
  if (first != 2 || num_spatial < 1 || num_spatial > 3 || input.element != Element::kReal)
    throw_error<InvalidInput>("input {} must be real, with batch, channels and 1 to 3 spatial axes",
                              to_string(input));
  const size_t entries = options_.size.size();
  if (entries != 1 && entries != static_cast<size_t>(num_spatial))
    throw_error<InvalidInput>("size has {} entries; give 1, or {} as the input has spatial axes",
                              entries, num_spatial);
  for (int64_t size : options_.size)
    if (size < 0)
      throw_error<InvalidInput>("size {} must be at least 1, or 0 for the input's", size);
  const Shape shape = input.shape();
  const Shape space = output_space({shape.begin() + 2, shape.end()});
  ValueType output = input;
  for (int index = 0; index < num_spatial; ++index) {
    Axis& axis = output.axes[2 + index];
    axis.stride = axis.stride * Ratio::of(axis.size, space[index]);
    axis.size = space[index];
  }
  return output;
}

Shape AdaptiveGeometry::output_space(const Shape& input_space) const {
  Shape space;
  for (size_t i = 0; i < input_space.size(); ++i) {
    const int64_t size = options_.size[options_.size.size() == 1 ? 0 : i];
    space.push_back(size == 0 ? input_space[i] : size);
  }
  return space;
}

Box AdaptiveGeometry::needed(const Box& out, const NodeTypes& types) const {
  if (out.empty()) return Box(std::vector<Range>(out.num_axes()));
  Box box = out;
  const AdaptivePiece axes = piece(out, types);
  for (int axis = 2; axis < out.num_axes(); ++axis) box[axis] = axes[axis + 3 - out.num_axes()].in;
  return box;
}

AdaptivePiece AdaptiveGeometry::piece(const Box& out, const NodeTypes& types) const {
  AdaptivePiece piece;
  const int num_axes = out.num_axes();
  for (int axis = 2; axis < num_axes; ++axis) {
    AdaptiveAxis& along = piece[axis + 3 - num_axes];
    along.input_size = types.inputs[0].axes[axis].size;
    along.output_size = types.output.axes[axis].size;
    along.out = out[axis];
    along.in = {along.window(along.out.begin).begin, along.window(along.out.end - 1).end};
  }
  return piece;
}

}  // namespace tessera

#include "tessera/train/flips.h"

#include <list>

#include "tessera/comm/outstanding.h"
#include "tessera/graph/op.h"

namespace tessera {
namespace {

bool is_turned(int axis, int first_spatial, FlippedAxes axes) {
  return axis >= first_spatial && ((axes >> (axis - first_spatial)) & 1u) != 0;
}

/// A box on its way, between the piece that it was computed as and the one that it belongs to.
struct Parcel {
  int target = 0;
  Box box;
  at::Tensor bytes;
};

}  // namespace

Box mirrored(const Box& box, const Shape& shape, int first_spatial, FlippedAxes axes) {
  Box result = box;
  for (int axis = first_spatial; axis < box.num_axes(); ++axis)
    if (is_turned(axis, first_spatial, axes))
      result[axis] = {shape[axis] - box[axis].end, shape[axis] - box[axis].begin};
  return result;
}

at::Tensor turned(const at::Tensor& tensor, int first_spatial, FlippedAxes axes) {
  std::vector<int64_t> dimensions;
  for (int axis = first_spatial; axis < tensor.dim(); ++axis)
    if (is_turned(axis, first_spatial, axes)) dimensions.push_back(axis);
  return dimensions.empty() ? tensor : tensor.flip(dimensions);
}

PieceTensors turn_back(const Layout& layout, int first_spatial, FlippedAxes axes,
                       const PieceTensors& own, Transport& transport) {
  const int rank = transport.rank();
  PieceTensors result;
  for (const auto& [piece, tensor] : own) result[piece] = at::empty_like(tensor);
  std::list<Parcel> received;
  std::list<at::Tensor> sent;
  Batch batch;
  // Both ends walk all pairs in the same order, so that messages of two ranks match.
  for (int source = 0; source < layout.num_pieces(); ++source) {
    const Piece& from = layout.piece(source);
    if (from.box.empty()) continue;
    const Box box = mirrored(from.box, layout.global_shape(), first_spatial, axes);
    const at::Tensor whole =
        from.rank == rank ? turned(own.at(source), first_spatial, axes) : at::Tensor();
    for (int target : layout.pieces_meeting(box)) {
      const Piece& to = layout.piece(target);
      const Box shared = intersect(box, to.box);
      if (from.rank != rank && to.rank != rank) continue;
      at::Tensor part;
      if (from.rank == rank) part = Operand{whole, box}.view(shared);
      if (from.rank == to.rank) {
        Operand{result.at(target), to.box}.view(shared).copy_(part);
      } else if (from.rank == rank) {
        sent.push_back(part.contiguous());
        batch.sends.push_back(
            {to.rank, sent.back().data_ptr(), static_cast<int64_t>(sent.back().nbytes())});
      } else {
        received.push_back(
            {target, shared, at::empty(shared.shape(), result.at(target).scalar_type())});
        const at::Tensor& bytes = received.back().bytes;
        batch.receives.push_back(
            {from.rank, bytes.data_ptr(), static_cast<int64_t>(bytes.nbytes())});
      }
    }
  }
  Outstanding(transport, batch, "turned outputs").finish();
  for (const Parcel& parcel : received)
    Operand{result.at(parcel.target), layout.piece(parcel.target).box}
        .view(parcel.box)
        .copy_(parcel.bytes);
  return result;
}

}  // namespace tessera

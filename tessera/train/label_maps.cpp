#include "tessera/train/label_maps.h"

#include "tessera/train/collect.h"

namespace tessera {

LabelMaps::LabelMaps(const Shape& shape, Transport& transport)
    : shape_(shape), transport_(transport) {
  if (transport.rank() == 0) maps_ = at::empty(shape, at::kLong);
}

void LabelMaps::collect(const std::vector<Piece>& kept) {
  std::vector<HeldTensor> tensors;
  size_t next_own = 0;
  for (const Piece& piece : kept)
    tensors.push_back({{piece.rank},
                       without_axis(piece.box, 1).shape(),
                       at::kLong,
                       piece.rank == transport_.rank() ? own_[next_own++] : at::Tensor()});
  const std::vector<at::Tensor> collected = collect_on_first(transport_, tensors);
  for (size_t i = 0; i < collected.size(); ++i)
    Operand{maps_, Box::whole(shape_)}.view(without_axis(kept[i].box, 1)).copy_(collected[i]);
  own_.clear();
}

}  // namespace tessera

#include "tessera/train/label_maps.h"

#include "tessera/train/collect.h"

namespace tessera {
namespace {

/// As small as can be: a rank keeps its share of all windows of a batch.
at::ScalarType class_type(int64_t num_channels) {
  return num_channels <= 256 ? at::kByte : at::kLong;
}

}  // namespace

LabelMaps::LabelMaps(Shape space, Transport& transport)
    : space_(std::move(space)), transport_(transport) {}

void LabelMaps::add(const at::Tensor& classes) { added_.push_back(classes); }

void LabelMaps::note_window(const std::vector<Piece>& kept) {
  size_t next = 0;
  for (const Piece& piece : kept) {
    const at::ScalarType type = class_type(piece.box[1].size());
    const bool is_own = piece.rank == transport_.rank();
    kept_.push_back({without_axis(piece.box, 1), piece.rank, type,
                     is_own ? added_[next++].to(type) : at::Tensor()});
  }
  added_.clear();
}

at::Tensor LabelMaps::collect(int64_t entry) const {
  std::vector<Box> boxes;
  std::vector<HeldTensor> parts;
  for (const KeptClasses& kept : kept_) {
    const Range entries = kept.box[0];
    if (entry < entries.begin || entries.end <= entry) continue;
    boxes.push_back(without_axis(kept.box, 0));
    parts.push_back({{kept.rank},
                     boxes.back().shape(),
                     kept.type,
                     kept.own.defined() ? kept.own[entry - entries.begin] : at::Tensor()});
  }
  const std::vector<at::Tensor> collected = collect_on_first(transport_, parts);
  if (transport_.rank() != 0) return {};
  const at::Tensor map = at::empty(space_, at::kLong);
  for (size_t i = 0; i < collected.size(); ++i)
    Operand{map, Box::whole(space_)}.view(boxes[i]).copy_(collected[i]);
  return map;
}

}  // namespace tessera

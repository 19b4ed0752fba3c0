#include "tessera/geometry/transfer.h"

namespace tessera {
namespace {

/// Calls `visit` with the pieces of a rank that may meet a box: all of them where they are few,
/// else by the layout's table, so that many pieces and as many needs do not take the time of their
/// product.
template <class Visit>
void for_pieces_near(const Layout& source, int rank, const Box& box, Visit visit) {
  constexpr size_t kFew = 32;
  const std::vector<int>& own = source.pieces_of(rank);
  if (own.size() <= kFew) {
    for (int index : own) visit(index);
    return;
  }
  for (int index : source.pieces_meeting(box))
    if (source.piece(index).rank == rank) visit(index);
}

}  // namespace

void Transfer::add_arrivals(const Layout& source, const Need& need, int index) {
  for (int source_piece : source.pieces_meeting(need.box)) {
    const Piece& piece = source.piece(source_piece);
    moves_.push_back({piece.rank, need.rank, source_piece, index, intersect(piece.box, need.box)});
  }
}

Transfer::Transfer(const Layout& source, const std::vector<Need>& needs) {
  for (int index = 0; index < static_cast<int>(needs.size()); ++index)
    add_arrivals(source, needs[index], index);
}

Transfer::Transfer(const Layout& source, const std::vector<Need>& needs, int rank) {
  for (int index = 0; index < static_cast<int>(needs.size()); ++index) {
    const Need& need = needs[index];
    if (need.rank == rank) {
      add_arrivals(source, need, index);
      continue;
    }
    for_pieces_near(source, rank, need.box, [&](int source_piece) {
      const Box box = intersect(source.piece(source_piece).box, need.box);
      if (!box.empty()) moves_.push_back({rank, need.rank, source_piece, index, box});
    });
  }
}

int64_t Transfer::remote_volume() const {
  int64_t volume = 0;
  for (const Move& move : moves_)
    if (move.from != move.to) volume += move.box.volume();
  return volume;
}

int64_t remote_volume(const Layout& source, const std::vector<Need>& needs) {
  const Box whole = Box::whole(source.global_shape());
  int64_t volume = 0;
  for (const Need& need : needs) {
    if (need.box.empty()) continue;
    volume += intersect(need.box, whole).volume();
    for_pieces_near(source, need.rank, need.box, [&](int own) {
      volume -= intersect(source.piece(own).box, need.box).volume();
    });
  }
  return volume;
}

}  // namespace tessera

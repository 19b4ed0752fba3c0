#include "tessera/geometry/transfer.h"

namespace tessera {

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
  const std::vector<int>& own = source.pieces_of(rank);
  for (int index = 0; index < static_cast<int>(needs.size()); ++index) {
    const Need& need = needs[index];
    if (need.rank == rank) {
      add_arrivals(source, need, index);
      continue;
    }
    for (int source_piece : own) {
      const Box box = intersect(source.piece(source_piece).box, need.box);
      if (!box.empty()) moves_.push_back({rank, need.rank, source_piece, index, box});
    }
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
    for (int own : source.pieces_of(need.rank))
      volume -= intersect(source.piece(own).box, need.box).volume();
  }
  return volume;
}

}  // namespace tessera

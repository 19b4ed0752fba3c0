#include "tessera/geometry/transfer.h"

namespace tessera {

Transfer::Transfer(const Layout& source, const std::vector<Need>& needs) {
  for (int index = 0; index < static_cast<int>(needs.size()); ++index) {
    const Need& need = needs[index];
    for (int source_piece : source.pieces_meeting(need.box)) {
      const Piece& piece = source.piece(source_piece);
      moves_.push_back(
          {piece.rank, need.rank, source_piece, index, intersect(piece.box, need.box)});
    }
  }
}

int64_t Transfer::remote_volume() const {
  int64_t volume = 0;
  for (const Move& move : moves_)
    if (move.from != move.to) volume += move.box.volume();
  return volume;
}

}  // namespace tessera

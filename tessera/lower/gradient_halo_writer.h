#pragma once
// Halos of gradients, on one rank: where backward of a node reads the gradient of its output around
// its piece (GradientHalo in edges.h), others' parts of it travel as those of a value do in
// forward. Between start() and finish() there may be anything that does not touch the margins.

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tessera/lower/exchange_writer.h"

namespace tessera {

class GradientHaloWriter {
 public:
  GradientHaloWriter(ProgramWriter* writer, ExchangeWriter* exchanges)
      : writer_(*writer), exchanges_(*exchanges) {}

  /// A buffer for the gradient of a piece, with room for the halo where its producer reads one.
  BufferId add_home(ValueId value, int piece);

  /// Of the node's inputs, those whose gradient this node alone writes, into its home, and of which
  /// other ranks read a halo: they can go as soon as they are written. The same on all ranks.
  std::vector<ValueId> written_by(NodeId node) const;

  /// Sends what others read of the gradient of the pieces here, which lie where `home` says. A
  /// second call does nothing.
  void start(ValueId value, int micro_batch, const std::function<BufferId(int)>& home);
  void finish(ValueId value, int micro_batch);

  /// Where the gradient of a piece lies with its halo, once it has been started; -1 before.
  BufferId buffer(ValueId value, int piece) const;

 private:
  using Key = std::pair<ValueId, int>;

  BufferId make_room(ValueId value, int piece, BufferId home);
  std::vector<Message> received(ValueId value, int micro_batch) const;

  ProgramWriter& writer_;
  ExchangeWriter& exchanges_;
  std::set<BufferId> homes_;           // that have room for it
  std::map<Key, BufferId> with_halo_;  // value, piece
  std::map<Key, Exchange> started_;    // value, micro-batch
};

}  // namespace tessera

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/lower/emitter.h"

namespace tessera {

/// The moves that cross ranks, as one message per peer with its boxes in plan order. `peer_of` says
/// who is at the other end, or -1 where the move is not ours.
template <class PeerOf, class ViewOf>
std::vector<Message> Emitter::route(const EdgeGroup& group, PeerOf peer_of, ViewOf view_of) const {
  std::map<int, Message> by_peer;
  std::map<int, int64_t> filled;
  for (const Move& move : group.moves) {
    if (move.from == move.to) continue;
    const int peer = peer_of(move);
    if (peer < 0) continue;
    Message& message = by_peer[peer];
    message.peer = peer;
    message.segments.push_back({view_of(move), filled[peer]});
    filled[peer] += move.box.volume();
  }
  std::vector<Message> messages;
  for (auto& [peer, message] : by_peer) messages.push_back(std::move(message));
  return messages;
}

void Emitter::add_strips(std::vector<Message>* messages, const std::string& name,
                         ElementType element) {
  for (Message& message : *messages) {
    const Segment& last = message.segments.back();
    const Box box{{0, last.offset + last.view.box.volume()}};
    message.strip =
        add_buffer(fmt::format("{} {}", name, message.peer), BufferKind::kStrip, box, box, element);
  }
}

std::vector<Message> Emitter::exchange_receives(ValueId value, int g) const {
  return route(
      placed_.values[value].groups[g],
      [&](const Move& move) { return move.to == rank_ ? move.from : -1; },
      [&](const Move& move) {
        return View{instances_[value].groups[g][move.need], move.box};
      });
}

void Emitter::start_exchange(ValueId value, int g) {
  const EdgeGroup& group = placed_.values[value].groups[g];
  Exchange exchange;
  exchange.sends = route(
      group, [&](const Move& move) { return move.from == rank_ ? move.to : -1; },
      [&](const Move& move) {
        return View{instances_[value].homes[move.source_piece], move.box};
      });
  exchange.receives = exchange_receives(value, g);
  const std::string& name = graph_.value(value).name;
  add_strips(&exchange.sends, name + " halo to", element_of(value));
  add_strips(&exchange.receives, name + " halo from", element_of(value));
  if (!exchange.idle()) append(StartTransfer{group.channel, exchange.sends, exchange.receives});
  exchanges_[{value, g}] = std::move(exchange);
}

void Emitter::finish_exchange(ValueId value, int g) {
  const Exchange& exchange = exchanges_.at({value, g});
  if (exchange.idle() || std::exchange(exchange_finished_[{value, g}], true)) return;
  append(FinishTransfer{placed_.values[value].groups[g].channel, exchange.strips()});
  if (!exchange.receives.empty()) append(Unpack{exchange.receives, Combine::kStore});
}

/// The strips of the first exchange lie ready: a recomputation communicates nothing.
void Emitter::unpack_again(ValueId value, int g) {
  const Exchange& exchange = exchanges_.at({value, g});
  std::vector<Message> receives = exchange_receives(value, g);
  for (size_t i = 0; i < receives.size(); ++i) receives[i].strip = exchange.receives[i].strip;
  if (!receives.empty()) append(Unpack{receives, Combine::kStore});
}

void Emitter::start_adjoint(ValueId value, int g) {
  const EdgeGroup& group = placed_.values[value].groups[g];
  Exchange exchange;
  exchange.sends = route(
      group,
      [&](const Move& move) {
        return move.to == rank_ && contributes(value, g, move) ? move.from : -1;
      },
      [&](const Move& move) {
        return View{gradients_[value].groups[g][move.need], move.box};
      });
  exchange.receives = route(
      group,
      [&](const Move& move) {
        return move.from == rank_ && contributes(value, g, move) ? move.to : -1;
      },
      [&](const Move& move) {
        return View{gradient_home(value, move.source_piece), move.box};
      });
  const std::string& name = graph_.value(value).name;
  add_strips(&exchange.sends, name + " halo gradient to", ElementType::kReal);
  add_strips(&exchange.receives, name + " halo gradient from", ElementType::kReal);
  if (exchange.idle()) return;
  append(StartTransfer{group.channel + 1, exchange.sends, exchange.receives});
  adjoints_[{value, g}] = std::move(exchange);
  started_adjoints_[value].push_back(g);
}

void Emitter::finish_adjoint(ValueId value, int g) {
  const Exchange& exchange = adjoints_.at({value, g});
  append(FinishTransfer{placed_.values[value].groups[g].channel + 1, exchange.strips()});
  if (!exchange.receives.empty()) append(Unpack{exchange.receives, Combine::kAdd});
}

}  // namespace tessera

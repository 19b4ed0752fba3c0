#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/lower/emitter.h"

namespace tessera {

/// The moves that cross ranks, as one message per peer with its boxes in plan order. `peer_of` says
/// who is at the other end, or -1 where the move is not ours. `whole` gets the only move of each
/// message, or null.
template <class PeerOf, class ViewOf>
std::vector<Message> Emitter::route(const EdgeGroup& group, PeerOf peer_of, ViewOf view_of,
                                    std::vector<const Move*>* whole) const {
  std::map<int, Message> by_peer;
  std::map<int, int64_t> filled;
  std::map<int, const Move*> first;
  for (const Move& move : group.moves_of(micro_batch_)) {
    if (move.from == move.to) continue;
    const int peer = peer_of(move);
    if (peer < 0) continue;
    Message& message = by_peer[peer];
    message.peer = peer;
    message.segments.push_back({view_of(move), filled[peer]});
    filled[peer] += move.box.volume();
    first[peer] = message.segments.size() == 1 ? &move : nullptr;
  }
  std::vector<Message> messages;
  for (auto& [peer, message] : by_peer) {
    messages.push_back(std::move(message));
    if (whole != nullptr) whole->push_back(first[peer]);
  }
  return messages;
}

/// A message of one box has the shape of the box; where it is sent from a buffer of that very box,
/// the buffer itself is what travels.
void Emitter::add_strips(std::vector<Message>* messages, const std::string& name,
                         ElementType element, bool sending) {
  for (Message& message : *messages) {
    const Segment& last = message.segments.back();
    const bool single = message.segments.size() == 1;
    if (sending && single && program_.buffers[last.view.buffer].box == last.view.box) {
      message.strip = last.view.buffer;
      continue;
    }
    const Box box = single ? last.view.box : Box{{0, last.offset + last.view.box.volume()}};
    message.strip =
        add_buffer(fmt::format("{} {}", name, message.peer), BufferKind::kStrip, box, box, element);
  }
}

/// A rank that has nothing more to do with the exchange (`finished_here` is false) finishes its
/// sends once their receivers have posted, by the schedule's time.
void Emitter::start(int channel, const Exchange& exchange, bool finished_here) {
  if (exchange.idle()) return;
  append(StartTransfer{channel, exchange.sends, exchange.receives});
  if (finished_here) return;
  PendingSend pending{channel, exchange.strips(), 0};
  for (const Message& message : exchange.sends)
    pending.received = std::max(pending.received, context_.busy_until[message.peer]);
  pending_sends_.push_back(std::move(pending));
}

std::vector<Message> Emitter::exchange_receives(ValueId value, int g,
                                                std::vector<const Move*>* whole) const {
  return route(
      placed_.values[value].groups[g],
      [&](const Move& move) { return move.to == rank_ ? move.from : -1; },
      [&](const Move& move) {
        return View{instances_[value].groups[g][move.need], move.box};
      },
      whole);
}

void Emitter::start_exchange(ValueId value, int g) {
  const EdgeGroup& group = placed_.values[value].groups[g];
  Exchange exchange;
  exchange.sends = route(
      group, [&](const Move& move) { return move.from == rank_ ? move.to : -1; },
      [&](const Move& move) {
        return View{instances_[value].homes[move.source_piece], move.box};
      });
  exchange.receives = exchange_receives(value, g, &exchange.whole);
  const std::string& name = graph_.value(value).name;
  add_strips(&exchange.sends, name + " to", element_of(value), true);
  add_strips(&exchange.receives, name + " from", element_of(value), false);
  start(group.channel_of(micro_batch_), exchange, reads(value, g));
  exchanges_[edge(value, g)] = std::move(exchange);
}

void Emitter::finish_exchange(ValueId value, int g) {
  if (!reads(value, g) || std::exchange(exchange_finished_[edge(value, g)], true)) return;
  const Exchange& exchange = exchanges_.at(edge(value, g));
  if (!exchange.idle())
    append(FinishTransfer{placed_.values[value].groups[g].channel_of(micro_batch_),
                          exchange.strips()});
  unpack(value, g);
}

/// Puts what was received into its places; repeated after a recomputation, which communicates
/// nothing: the strips of the first exchange are still there.
void Emitter::unpack(ValueId value, int g) {
  const Exchange& exchange = exchanges_.at(edge(value, g));
  std::vector<bool> taken_over(exchange.receives.size(), false);
  if (!owns(value)) {
    for (size_t i = 0; i < exchange.receives.size(); ++i)
      taken_over[i] = take_over_strip(value, g, exchange, i);
    make_group_buffers(value, g);
  }
  std::vector<Message> received = exchange_receives(value, g), unpacked;
  for (size_t i = 0; i < received.size(); ++i) {
    received[i].strip = exchange.receives[i].strip;
    if (!taken_over[i]) unpacked.push_back(std::move(received[i]));
  }
  if (!unpacked.empty()) append(Unpack{std::move(unpacked), Combine::kStore});
}

/// A message that is all of a need is the need's buffer.
bool Emitter::take_over_strip(ValueId value, int g, const Exchange& exchange, size_t message) {
  const Move* move = exchange.whole[message];
  if (move == nullptr || !(placed_.values[value].groups[g].needs[move->need].box == move->box))
    return false;
  instances_[value].groups[g][move->need] = exchange.receives[message].strip;
  return true;
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
        return View{-1, move.box};
      },
      &exchange.whole);
  const std::string& name = graph_.value(value).name;
  add_strips(&exchange.sends, name + " gradient to", ElementType::kReal, true);
  add_strips(&exchange.receives, name + " gradient from", ElementType::kReal, false);
  start(group.channel_of(micro_batch_) + 1, exchange, owns(value));
  if (exchange.idle() || !owns(value)) return;
  adjoints_[edge(value, g)] = std::move(exchange);
  started_adjoints_[{value, micro_batch_}].push_back(g);
}

/// Received parts are added to the gradient's home; one that is all of a piece, where there is no
/// home yet, becomes it.
void Emitter::finish_adjoint(ValueId value, int g) {
  const EdgeGroup& group = placed_.values[value].groups[g];
  const Exchange& exchange = adjoints_.at(edge(value, g));
  append(FinishTransfer{group.channel_of(micro_batch_) + 1, exchange.strips()});
  std::vector<bool> taken_over(exchange.receives.size(), false);
  for (size_t i = 0; i < exchange.receives.size(); ++i) {
    const Move* move = exchange.whole[i];
    if (move == nullptr) continue;
    BufferId& home = gradients_[value].homes[move->source_piece];
    if (home >= 0 || !(placed_.values[value].layout.piece(move->source_piece).box == move->box))
      continue;
    home = exchange.receives[i].strip;
    taken_over[i] = true;
  }
  std::vector<Message> received = route(
      group,
      [&](const Move& move) {
        return move.from == rank_ && contributes(value, g, move) ? move.to : -1;
      },
      [&](const Move& move) {
        return View{gradient_home(value, move.source_piece), move.box};
      });
  std::vector<Message> added;
  for (size_t i = 0; i < received.size(); ++i) {
    received[i].strip = exchange.receives[i].strip;
    if (!taken_over[i]) added.push_back(std::move(received[i]));
  }
  if (!added.empty()) append(Unpack{std::move(added), Combine::kAdd});
}

}  // namespace tessera

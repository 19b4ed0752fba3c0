#include "tessera/lower/exchange_writer.h"

#include <algorithm>

namespace tessera {

std::vector<BufferId> Exchange::strips() const {
  std::vector<BufferId> strips;
  for (const auto* messages : {&sends, &receives})
    for (const Message& message : *messages) strips.push_back(message.strip);
  return strips;
}

std::vector<Message> ExchangeWriter::route(std::span<const Move> moves,
                                           const std::function<int(const Move&)>& peer_of,
                                           const std::function<View(const Move&)>& view_of,
                                           std::vector<const Move*>* only) {
  struct Route {
    Message message;
    int64_t filled = 0;
    const Move* only_move = nullptr;
  };
  std::map<int, Route> by_peer;
  for (const Move& move : moves) {
    if (move.from == move.to) continue;
    const int peer = peer_of(move);
    if (peer < 0) continue;
    Route& route = by_peer[peer];
    route.message.peer = peer;
    route.message.segments.push_back({view_of(move), route.filled});
    route.filled += move.box.volume();
    route.only_move = route.message.segments.size() == 1 ? &move : nullptr;
  }
  std::vector<Message> messages;
  for (auto& [peer, route] : by_peer) {
    messages.push_back(std::move(route.message));
    if (only != nullptr) only->push_back(route.only_move);
  }
  return messages;
}

BufferId ExchangeWriter::add_strip(const Message& message, const std::string& name,
                                   ElementType element) {
  const Segment& last = message.segments.back();
  const Box box =
      message.segments.size() == 1 ? last.view.box : Box{{0, last.offset + last.view.box.volume()}};
  return writer_.add_buffer(fmt::format("{} {}", name, message.peer), BufferKind::kStrip, box,
                            element);
}

void ExchangeWriter::add_strips(const std::string& name, ElementType element, Exchange* exchange) {
  for (Message& message : exchange->sends) {
    const View& view = message.segments.front().view;
    const bool travels =
        message.segments.size() == 1 && writer_.buffer(view.buffer).box == view.box;
    message.strip = travels ? view.buffer : add_strip(message, name + " to", element);
  }
  for (Message& message : exchange->receives)
    message.strip = add_strip(message, name + " from", element);
}

void ExchangeWriter::start(int channel, const Exchange& exchange, bool finished_here) {
  if (exchange.idle()) return;
  writer_.append(StartTransfer{channel, exchange.sends, exchange.receives});
  if (finished_here) return;
  PendingSend pending{channel, exchange.strips(), 0};
  for (const Message& message : exchange.sends)
    pending.received =
        std::max(pending.received, busy_until_[writer_.placed.plan.stage_of_rank(message.peer)]);
  pending_.push_back(std::move(pending));
}

void ExchangeWriter::finish(int channel, const Exchange& exchange) {
  if (!exchange.idle()) writer_.append(FinishTransfer{channel, exchange.strips()});
}

void ExchangeWriter::unpack(const Exchange& exchange, std::vector<Message> received,
                            const std::vector<bool>& taken_over, Combine combine) {
  std::vector<Message> unpacked;
  for (size_t i = 0; i < received.size(); ++i) {
    if (taken_over[i]) continue;
    received[i].strip = exchange.receives[i].strip;
    unpacked.push_back(std::move(received[i]));
  }
  if (!unpacked.empty()) writer_.append(Unpack{std::move(unpacked), combine});
}

void ExchangeWriter::finish_sends(double now) {
  std::erase_if(pending_, [&](const PendingSend& send) {
    if (send.received > now) return false;
    writer_.append(FinishTransfer{send.channel, send.strips});
    return true;
  });
}

}  // namespace tessera

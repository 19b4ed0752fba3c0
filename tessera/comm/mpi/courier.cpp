#include "tessera/comm/mpi/courier.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tessera/base/error.h"

namespace tessera::mpi {
namespace {

/// What travels inside the envelope: with the size before it, about what MPI sends eagerly.
constexpr int64_t kSmallBytes = 4000;

int64_t num_chunks(int64_t bytes, int64_t chunk_bytes) {
  return (bytes + chunk_bytes - 1) / chunk_bytes;
}

}  // namespace

struct Courier::Envelope {
  int64_t bytes = 0;
  int64_t chunk_bytes = 0;    // the sender's word counts
  char content[kSmallBytes];  // of a small message
};

Courier::Courier(Wire& wire, int64_t chunk_bytes, CourierEvents events)
    : wire_(wire), chunk_bytes_(chunk_bytes), events_(std::move(events)), peers_(wire.size()) {}

void Courier::post(StartedBatch& batch) {
  for (CarriedMessage& message : batch.messages)
    message.as == PostedAs::kSend ? post_send(message) : post_receive(message);
}

void Courier::post_send(CarriedMessage& message) {
  Peer& peer = peers_[message.peer];
  const bool small = message.bytes <= kSmallBytes;
  auto envelope = std::make_shared<Envelope>();
  envelope->bytes = message.bytes;
  envelope->chunk_bytes = chunk_bytes_;
  if (small) std::copy_n(message.source, message.bytes, envelope->content);
  const int64_t bytes = offsetof(Envelope, content) + (small ? message.bytes : 0);
  ++peer.counts.messages_sent;
  wire_.send(Channel::kEnvelope, message.peer, envelope.get(), bytes,
             [this, envelope, small, &message](const Arrival&) {
               if (small && !stopped_) events_.settled(message);
             });
  if (small) return;
  peer.uncleared.push_back(&message);
  wire_.receive(Channel::kClear, message.peer, nullptr, 0, [this, &peer](const Arrival& arrival) {
    if (stopped_ || arrival.cancelled) return;
    CarriedMessage& cleared = *peer.uncleared.front();
    peer.uncleared.pop_front();
    send_data(cleared);
  });
}

void Courier::post_receive(CarriedMessage& message) {
  Peer& peer = peers_[message.peer];
  auto expected = std::make_shared<Expected>();
  expected->message = &message;
  expected->envelope = std::make_shared<Envelope>();
  peer.expected.push_back(expected);
  ++peer.counts.messages_expected;
  wire_.receive(Channel::kEnvelope, message.peer, expected->envelope.get(), sizeof(Envelope),
                [this, expected, &peer](const Arrival& arrival) {
                  if (stopped_ || arrival.cancelled) return;
                  expected->arrived = true;
                  envelopes_arrived(peer);
                });
}

/// Deals with envelopes in the order of the receives: MPI promises to match in order, not to
/// complete in order.
void Courier::envelopes_arrived(Peer& peer) {
  while (!stopped_ && !peer.expected.empty() && peer.expected.front()->arrived) {
    const std::shared_ptr<Expected> first = std::move(peer.expected.front());
    peer.expected.pop_front();
    accept(*first->message, *first->envelope);
  }
}

void Courier::accept(CarriedMessage& message, const Envelope& envelope) {
  if (envelope.bytes != message.bytes)
    return events_.mismatched(
        size_mismatch(message.peer, wire_.rank(), envelope.bytes, message.bytes));
  if (message.bytes > kSmallBytes) return receive_data(message, envelope.chunk_bytes);
  std::copy_n(envelope.content, message.bytes, message.target);
  events_.settled(message);
}

void Courier::receive_data(CarriedMessage& message, int64_t chunk_bytes) {
  Peer& peer = peers_[message.peer];
  message.chunks_left = num_chunks(message.bytes, chunk_bytes);
  for (int64_t begin = 0; begin < message.bytes; begin += chunk_bytes) {
    const int64_t number = peer.chunks_expected++;
    ++num_data_receives_;
    peer.data_receives[number] = wire_.receive(Channel::kData, message.peer, message.target + begin,
                                               std::min(chunk_bytes, message.bytes - begin),
                                               [this, &peer, &message, number](const Arrival&) {
                                                 peer.data_receives.erase(number);
                                                 --num_data_receives_;
                                                 chunk_done(message);
                                               });
  }
  wire_.send(Channel::kClear, message.peer, nullptr, 0, [](const Arrival&) {});
}

void Courier::send_data(CarriedMessage& message) {
  PeerCounts& counts = peers_[message.peer].counts;
  message.chunks_left = num_chunks(message.bytes, chunk_bytes_);
  for (int64_t begin = 0; begin < message.bytes; begin += chunk_bytes_) {
    ++counts.chunks_sent;
    ++num_data_sends_;
    wire_.send(Channel::kData, message.peer, message.source + begin,
               std::min(chunk_bytes_, message.bytes - begin), [this, &message](const Arrival&) {
                 --num_data_sends_;
                 chunk_done(message);
               });
  }
}

void Courier::chunk_done(CarriedMessage& message) {
  if (stopped_) return;
  --message.chunks_left == 0 ? events_.settled(message) : events_.progressed(message);
}

int64_t Courier::expected_bytes(int peer, int64_t n) const {
  const auto& expected = peers_[peer].expected;
  const int64_t first = peers_[peer].counts.messages_expected - std::ssize(expected);
  TESSERA_CHECK(n >= first && n - first < std::ssize(expected), "receive {} of {} to {}", n, first,
                first + std::ssize(expected));
  return expected[n - first]->message->bytes;
}

void Courier::peer_stopped(int peer, int64_t chunks_sent) {
  auto& receives = peers_[peer].data_receives;
  for (auto it = receives.lower_bound(chunks_sent); it != receives.end(); ++it)
    wire_.cancel(it->second);
}

void Courier::cancel_receives() {
  for (Peer& peer : peers_)
    for (const auto& [number, id] : peer.data_receives) wire_.cancel(id);
}

}  // namespace tessera::mpi

#include "tessera/simulate/message_clock.h"

#include <algorithm>

namespace tessera {

MessageClock::Ticket MessageClock::send(int from, int to, double now, double takes) {
  std::vector<double>& arrivals = pairs_[{from, to}].arrivals;
  arrivals.push_back(now + takes);
  return {from, to, arrivals.size() - 1};
}

MessageClock::Ticket MessageClock::receive(int from, int to, double now) {
  std::vector<double>& receives = pairs_[{from, to}].receives;
  receives.push_back(now);
  return {from, to, receives.size() - 1};
}

std::optional<double> MessageClock::done(const Ticket& ticket) const {
  const Pair& pair = pairs_.at({ticket.from, ticket.to});
  if (ticket.index >= std::min(pair.arrivals.size(), pair.receives.size())) return std::nullopt;
  return std::max(pair.arrivals[ticket.index], pair.receives[ticket.index]);
}

}  // namespace tessera

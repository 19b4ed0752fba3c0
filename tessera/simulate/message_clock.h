#pragma once
// When messages have moved, in virtual time. The n-th send from a to b meets the n-th receive of b
// from a. A message is done, for both ends, when it has arrived (the send's time and what it takes)
// and its receive is posted: sends rendezvous.
//
// Example: sent at 3, taking 2, its receive posted at 7, a message is done at 7; posted at 1, at 5.

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tessera {

class MessageClock {
 public:
  struct Ticket {
    int from = 0;
    int to = 0;
    size_t index = 0;
  };

  Ticket send(int from, int to, double now, double takes);
  Ticket receive(int from, int to, double now);
  /// None until both ends have posted.
  std::optional<double> done(const Ticket& ticket) const;

 private:
  struct Pair {
    std::vector<double> arrivals;  // of all sends so far
    std::vector<double> receives;  // when they were posted
  };
  std::map<std::pair<int, int>, Pair> pairs_;  // from, to
};

}  // namespace tessera

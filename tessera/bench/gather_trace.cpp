#include "tessera/bench/gather_trace.h"

#include <algorithm>
#include <numeric>

#include "tessera/comm/collectives.h"
#include "tessera/comm/membership.h"

namespace tessera {
namespace {

/// Every member's text, in the order of the members.
std::vector<std::string> gather_text(Transport& transport, const Members& members,
                                     const std::string& own) {
  const int member = member_of(transport, members);
  std::vector<int64_t> sizes(members.size(), 0);
  sizes[member] = static_cast<int64_t>(own.size());
  AllGather(transport, members, std::vector<int64_t>(members.size(), sizeof(int64_t)), sizes.data())
      .finish();

  std::string all(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), '\0');
  std::copy(own.begin(), own.end(),
            all.begin() + std::accumulate(sizes.begin(), sizes.begin() + member, int64_t{0}));
  AllGather(transport, members, sizes, all.data()).finish();

  std::vector<std::string> texts;
  size_t begin = 0;
  for (int64_t size : sizes) {
    texts.push_back(all.substr(begin, size));
    begin += size;
  }
  return texts;
}

}  // namespace

std::vector<TraceEvent> gather_trace(Transport& transport, const Members& members,
                                     const std::vector<TraceEvent>& own) {
  std::vector<TraceEvent> events;
  const std::vector<std::string> texts = gather_text(transport, members, events_to_json(own));
  for (const std::string& text : texts) {
    const std::vector<TraceEvent> of_rank = events_from_json(text);
    events.insert(events.end(), of_rank.begin(), of_rank.end());
  }
  return events;
}

}  // namespace tessera

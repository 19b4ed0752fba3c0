#pragma once
// The events of all ranks in one place, over any transport.

#include <vector>

#include "tessera/base/members.h"
#include "tessera/comm/transport.h"
#include "tessera/report/trace.h"

namespace tessera {

/// Collective over `members`: two all-gathers, of 8 bytes and of the events as JSON text. The
/// events of all members in their order, on all of them.
std::vector<TraceEvent> gather_trace(Transport& transport, const Members& members,
                                     const std::vector<TraceEvent>& own);

}  // namespace tessera

#pragma once
// The programs of a small world are proved together before they run. In a large one no process
// knows them all: there the ranks make sure, when they start, that what each sends is what its
// peers wait for (lower/message_balance.h).

#include "tessera/comm/transport.h"
#include "tessera/lower/program.h"

namespace tessera {

/// Collective over all ranks. Throws InternalError, on all of them, where messages do not fit.
void check_messages_agree(Transport& transport, const Program& program);

}  // namespace tessera

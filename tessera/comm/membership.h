#pragma once
// What every collective asks of its members first.

#include "tessera/base/members.h"
#include "tessera/comm/transport.h"

namespace tessera {

/// This rank's index in `members`. Throws InternalError when they do not ascend, one of them does
/// not exist, or this rank is not among them.
int member_of(const Transport& transport, const Members& members);

}  // namespace tessera

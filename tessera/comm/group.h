#pragma once
// What every collective asks of its group first.

#include "tessera/comm/collectives.h"

namespace tessera {

/// This rank's index in `group`. Throws InternalError when the group is not ascending, holds a rank
/// that does not exist, or lacks this one.
int member_of(const Transport& transport, const Group& group);

}  // namespace tessera

#pragma once
// Ranks that fail together. A rank that threw alone would leave the others with a lost peer, and
// the job with the wrong exit code: 3 for a lost rank, where 2 tells the user what to mend.
//
// All are collective over all ranks of the transport, outside of any other collective.
//
// Example:
//   do_together(transport, [&] {
//     if (transport.rank() == 0) write_file_atomically(path, text);
//   });

#include <functional>
#include <string>

#include "tessera/comm/transport.h"

namespace tessera {

/// Work that may fail on some ranks for a reason that the user can mend: where it throws
/// InvalidInput on one, all throw it. The work itself may not communicate.
void do_together(Transport& transport, const std::function<void()>& work);

/// Where any rank complains, with a text that is not empty, all throw InvalidInput with the
/// complaint of the first that does. One gather of eight bytes a rank where nobody complains.
void fail_together(Transport& transport, const std::string& complaint);

/// Rank 0's text, on all ranks.
std::string broadcast_text(Transport& transport, const std::string& text);

}  // namespace tessera

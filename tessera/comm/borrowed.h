#pragma once
// A transport that somebody else owns and that outlives it: so that a decorator, which owns what it
// wraps, can wrap a borrowed one.

#include "tessera/comm/forwarding.h"

namespace tessera {

class BorrowedTransport final : public ForwardingTransport {
 public:
  explicit BorrowedTransport(Transport& lender) : ForwardingTransport(lender) {}
};

}  // namespace tessera

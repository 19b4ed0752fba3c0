#include "tessera/comm/outstanding.h"

#include <utility>

#include "tessera/base/error.h"

namespace tessera {

Outstanding::Outstanding(Transport& transport, const Batch& batch, const char* name)
    : transport_(&transport), ticket_(transport.start(batch)), name_(name) {}

Outstanding::Outstanding(Outstanding&& other) noexcept
    : transport_(std::exchange(other.transport_, nullptr)),
      ticket_(other.ticket_),
      name_(other.name_) {}

// By swap: what this object held before is dropped by `other`, with the same care.
Outstanding& Outstanding::operator=(Outstanding&& other) noexcept {
  std::swap(transport_, other.transport_);
  std::swap(ticket_, other.ticket_);
  std::swap(name_, other.name_);
  return *this;
}

Outstanding::~Outstanding() {
  if (transport_) transport_->abort(std::string(name_) + " was left unfinished");
}

void Outstanding::finish() {
  TESSERA_CHECK(started(), "there is nothing to finish");
  // Consumed even when finish() throws: by then the transport has let go of the memory.
  std::exchange(transport_, nullptr)->finish(ticket_);
}

}  // namespace tessera

#pragma once
// A started batch that cleans up after itself. When an exception unwinds between start and finish,
// the memory named in the batch is about to die while peers may still copy from or into it.
// Destroying an unfinished Outstanding therefore aborts the transport, which ends every use of this
// rank's memory.
//
// Example:
//   std::vector<char> strip(bytes);              // declared first: it dies last
//   Outstanding halo(transport, {.sends = {}, .receives = {{peer, strip.data(), bytes}}}, "halo");
//   compute();                                   // may throw
//   halo.finish();

#include "tessera/comm/transport.h"

namespace tessera {

class Outstanding {
 public:
  Outstanding() = default;
  /// Point-to-point. Starts the batch; `name` (a literal) tells the peers what was left unfinished.
  Outstanding(Transport& transport, const Batch& batch, const char* name);
  Outstanding(Outstanding&& other) noexcept;
  Outstanding& operator=(Outstanding&& other) noexcept;
  ~Outstanding();

  bool started() const { return transport_ != nullptr; }

  /// Waits for the batch, which must have been started. Throws what the transport throws.
  void finish();

 private:
  Transport* transport_ = nullptr;  // null: nothing outstanding
  Ticket ticket_ = -1;
  const char* name_ = "";
};

}  // namespace tessera

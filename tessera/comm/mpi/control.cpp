#include "tessera/comm/mpi/control.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.h"

namespace tessera::mpi {
namespace {

struct Head {
  ControlKind kind;
  int32_t origin;
  PeerCounts counts;
  int32_t num_waits;
  int32_t reason_bytes;
};

constexpr size_t kMostReasonBytes = kControlBytes - sizeof(Head) - kMostWaits * sizeof(int);

}  // namespace

std::vector<char> encode(const Control& control) {
  const size_t num_waits = std::min(control.waits_for.size(), kMostWaits);
  const size_t reason_bytes = std::min(control.reason.size(), kMostReasonBytes);
  const Head head{control.kind, control.origin, control.counts, static_cast<int32_t>(num_waits),
                  static_cast<int32_t>(reason_bytes)};
  std::vector<char> data(sizeof(Head) + num_waits * sizeof(int) + reason_bytes);
  std::memcpy(data.data(), &head, sizeof(Head));
  std::copy_n(reinterpret_cast<const char*>(control.waits_for.data()), num_waits * sizeof(int),
              data.begin() + sizeof(Head));
  std::copy_n(control.reason.begin(), reason_bytes,
              data.begin() + sizeof(Head) + num_waits * sizeof(int));
  return data;
}

Control decode(const char* data, int64_t bytes) {
  Head head;
  TESSERA_CHECK(bytes >= static_cast<int64_t>(sizeof(Head)), "control message of {} bytes", bytes);
  std::memcpy(&head, data, sizeof(Head));
  const int64_t waits_bytes = head.num_waits * static_cast<int64_t>(sizeof(int));
  TESSERA_CHECK(static_cast<int64_t>(sizeof(Head)) + waits_bytes + head.reason_bytes == bytes,
                "control message of {} bytes with {} ranks and {} bytes of text", bytes,
                head.num_waits, head.reason_bytes);
  Control control;
  control.kind = head.kind;
  control.origin = head.origin;
  control.counts = head.counts;
  control.waits_for.resize(head.num_waits);
  std::copy_n(data + sizeof(Head), waits_bytes, reinterpret_cast<char*>(control.waits_for.data()));
  control.reason.assign(data + sizeof(Head) + waits_bytes, head.reason_bytes);
  return control;
}

}  // namespace tessera::mpi

#pragma once
// Whole tensors on rank 0, which writes the files. Stages hold different parameters, so it has to
// ask the others for what it does not hold itself.
//
// Example:
//   std::vector<HeldTensor> tensors{{lowering.holders()[id], shape, at::kFloat,
//   store.values()[id]}}; const std::vector<at::Tensor> whole = collect_on_first(transport,
//   tensors); if (transport.rank() == 0) write(whole);

#include <ATen/ATen.h>

#include <vector>

#include "tessera/base/members.h"
#include "tessera/comm/transport.h"
#include "tessera/geometry/box.h"

namespace tessera {

/// A tensor of which some ranks have equal copies.
struct HeldTensor {
  Members holders;
  Shape shape;
  at::ScalarType type = at::kFloat;
  at::Tensor own;  // undefined on ranks that do not hold it
};

/// Collective over all ranks, which give the same list but for `own`. Rank 0 gets every tensor on
/// the host, its own ones without a copy where they lie there; the others get an empty list.
/// Point-to-point: one message for each tensor that rank 0 does not hold, from the first rank that
/// does.
std::vector<at::Tensor> collect_on_first(Transport& transport,
                                         const std::vector<HeldTensor>& tensors);

}  // namespace tessera

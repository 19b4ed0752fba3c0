#pragma once
// Numbers that a file stores in few bits and means otherwise: slope * stored + intercept, as NIfTI
// and DICOM have it.

#include <cstdint>

#include "tessera/images/pixel_type.h"

namespace tessera {

struct LinearScale {
  double slope = 1, intercept = 0;
  bool operator==(const LinearScale&) const = default;
};

/// The type that holds scaled numbers of a stored type: float32 where it holds the stored ones
/// exactly, else float64.
PixelType scaled_type(PixelType stored);

/// Writes `count` numbers of scaled_type(stored).
void scale_numbers(const void* from, PixelType stored, int64_t count, LinearScale scale, void* to);

}  // namespace tessera

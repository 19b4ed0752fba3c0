#pragma once
// One number as the bytes of an element of an image, such as a no-data value.

#include <array>

#include "tessera/images/pixel_type.h"

namespace tessera {

/// The first bytes_of(type) bytes are the element. Integers are rounded and held inside the type's
/// range, as GDAL does it; what is not a number is 0 there.
std::array<char, 8> element_of(PixelType type, double number);

}  // namespace tessera

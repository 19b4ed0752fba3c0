#include "tessera/images/scaled_numbers.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

template <class Stored, class Scaled>
void scale_all(const void* from, int64_t count, LinearScale scale, void* to) {
  const auto* const stored = static_cast<const Stored*>(from);
  auto* const scaled = static_cast<Scaled*>(to);
  for (int64_t i = 0; i < count; ++i)
    scaled[i] = static_cast<Scaled>(scale.slope * static_cast<double>(stored[i]) + scale.intercept);
}

}  // namespace

PixelType scaled_type(PixelType stored) {
  return bytes_of(stored) <= 2 || stored == PixelType::kFloat32 ? PixelType::kFloat32
                                                                : PixelType::kFloat64;
}

void scale_numbers(const void* from, PixelType stored, int64_t count, LinearScale scale, void* to) {
  switch (stored) {
    case PixelType::kUint8:
      return scale_all<uint8_t, float>(from, count, scale, to);
    case PixelType::kInt8:
      return scale_all<int8_t, float>(from, count, scale, to);
    case PixelType::kUint16:
      return scale_all<uint16_t, float>(from, count, scale, to);
    case PixelType::kInt16:
      return scale_all<int16_t, float>(from, count, scale, to);
    case PixelType::kUint32:
      return scale_all<uint32_t, double>(from, count, scale, to);
    case PixelType::kInt32:
      return scale_all<int32_t, double>(from, count, scale, to);
    case PixelType::kUint64:
      return scale_all<uint64_t, double>(from, count, scale, to);
    case PixelType::kInt64:
      return scale_all<int64_t, double>(from, count, scale, to);
    case PixelType::kFloat32:
      return scale_all<float, float>(from, count, scale, to);
    case PixelType::kFloat64:
      return scale_all<double, double>(from, count, scale, to);
    case PixelType::kFloat16:
      break;
  }
  throw_error<InternalError>("no format scales {}", name_of(stored));
}

}  // namespace tessera

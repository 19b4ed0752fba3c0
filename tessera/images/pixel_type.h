#pragma once
// The types of numbers that image files hold.

#include <cstdint>
#include <string_view>

namespace tessera {

enum class PixelType {
  kUint8,  // also for bool: 0 and 1
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64,
};

int64_t bytes_of(PixelType type);
/// NumPy's name, such as "uint8".
std::string_view name_of(PixelType type);
constexpr bool is_real(PixelType type) { return type >= PixelType::kFloat16; }
/// Whether a type of whole numbers has negative ones.
constexpr bool is_signed(PixelType type) {
  return type == PixelType::kInt8 || type == PixelType::kInt16 || type == PixelType::kInt32 ||
         type == PixelType::kInt64;
}

/// The type that a user calls by NumPy's name. Throws InvalidInput with the known ones; `place` is
/// for the message.
PixelType pixel_type_called(std::string_view name, std::string_view place);

}  // namespace tessera

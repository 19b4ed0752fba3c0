#include "tessera/images/element_of.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace tessera {
namespace {

template <class T>
std::array<char, 8> bytes_of_integer(double number) {
  using Limits = std::numeric_limits<T>;
  T element = 0;
  if (number >= static_cast<double>(Limits::max()))
    element = Limits::max();
  else if (number <= static_cast<double>(Limits::min()))
    element = Limits::min();
  else if (!std::isnan(number))
    element = static_cast<T>(std::round(number));
  std::array<char, 8> bytes{};
  std::memcpy(bytes.data(), &element, sizeof(element));
  return bytes;
}

template <class T>
std::array<char, 8> bytes_of_real(double number) {
  const T element = static_cast<T>(number);
  std::array<char, 8> bytes{};
  std::memcpy(bytes.data(), &element, sizeof(element));
  return bytes;
}

}  // namespace

std::array<char, 8> element_of(PixelType type, double number) {
  switch (type) {
    case PixelType::kUint8:
      return bytes_of_integer<uint8_t>(number);
    case PixelType::kInt8:
      return bytes_of_integer<int8_t>(number);
    case PixelType::kUint16:
      return bytes_of_integer<uint16_t>(number);
    case PixelType::kInt16:
      return bytes_of_integer<int16_t>(number);
    case PixelType::kUint32:
      return bytes_of_integer<uint32_t>(number);
    case PixelType::kInt32:
      return bytes_of_integer<int32_t>(number);
    case PixelType::kUint64:
      return bytes_of_integer<uint64_t>(number);
    case PixelType::kInt64:
      return bytes_of_integer<int64_t>(number);
    case PixelType::kFloat16:
      return bytes_of_real<_Float16>(number);
    case PixelType::kFloat32:
      return bytes_of_real<float>(number);
    case PixelType::kFloat64:
      return bytes_of_real<double>(number);
  }
  return {};
}

}  // namespace tessera

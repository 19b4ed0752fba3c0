#pragma once
// A number of type bf16: the upper half of a float32. Reading it is exact; writing rounds to the
// nearest, of two as near the one that ends in 0, and what is not a number stays none. The bits are
// those of ATen's c10::BFloat16.

#include <bit>
#include <cstdint>

namespace tessera {

struct Bf16 {
  uint16_t bits;

  Bf16() = default;
  Bf16(float value) {
    const auto wide = std::bit_cast<uint32_t>(value);
    const uint32_t nearest = (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
    bits = static_cast<uint16_t>(value == value ? nearest : 0x7fc0);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

  Bf16& operator+=(float value) { return *this = *this + value; }

  static Bf16 of_bits(uint16_t bits) {
    Bf16 number;
    number.bits = bits;
    return number;
  }
};

}  // namespace tessera

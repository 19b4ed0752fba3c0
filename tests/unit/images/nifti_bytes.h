#pragma once
// NIfTI files made byte by byte, from the standard's table of fields and not from our writer.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace tessera {

class NiftiBytes {
 public:
  enum class Version { kFirst, kSecond };
  enum class Order { kLittle, kBig };

  NiftiBytes(Version version, Order order)
      : second_(version == Version::kSecond), big_(order == Order::kBig) {
    bytes_.assign(second_ ? 544 : 352, '\0');
    put<int32_t>(0, second_ ? 540 : 348);
    if (second_) {
      bytes_.replace(4, 8, std::string("n+2\0\r\n\x1a\n", 8));
      put<int64_t>(168, 544);
    } else {
      bytes_.replace(344, 4, std::string("n+1\0", 4));
      put<float>(108, 352);
    }
    slope(0, 0);
  }

  NiftiBytes& dims(const std::vector<int64_t>& sizes) {
    const auto set = [this](int i, int64_t size) {
      second_ ? put<int64_t>(16 + 8 * i, size)
              : put<int16_t>(40 + 2 * i, static_cast<int16_t>(size));
    };
    for (int i = 0; i < 8; ++i) set(i, 1);
    set(0, std::ssize(sizes));
    for (int i = 0; i < std::ssize(sizes); ++i) set(i + 1, sizes[static_cast<size_t>(i)]);
    return *this;
  }
  NiftiBytes& type(int code, int bits) {
    put<int16_t>(second_ ? 12 : 70, static_cast<int16_t>(code));
    put<int16_t>(second_ ? 14 : 72, static_cast<int16_t>(bits));
    return *this;
  }
  NiftiBytes& slope(double slope, double intercept) {
    real(112, 176, 0, slope);
    real(116, 184, 0, intercept);
    return *this;
  }
  NiftiBytes& pixdim(const std::vector<double>& sizes) {
    for (int i = 0; i < std::ssize(sizes); ++i) real(76, 104, i, sizes[static_cast<size_t>(i)]);
    return *this;
  }
  NiftiBytes& units(int code) {
    second_ ? put<int32_t>(500, code) : put<int8_t>(123, static_cast<int8_t>(code));
    return *this;
  }
  NiftiBytes& sform(int code, const std::vector<double>& rows) {
    second_ ? put<int32_t>(348, code) : put<int16_t>(254, static_cast<int16_t>(code));
    for (int i = 0; i < 12; ++i) real(280, 400, i, rows[static_cast<size_t>(i)]);
    return *this;
  }
  /// b c d and the offset x y z.
  NiftiBytes& qform(int code, const std::vector<double>& numbers) {
    second_ ? put<int32_t>(344, code) : put<int16_t>(252, static_cast<int16_t>(code));
    for (int i = 0; i < 6; ++i) real(256, 352, i, numbers[static_cast<size_t>(i)]);
    return *this;
  }
  template <class T>
  NiftiBytes& numbers(const std::vector<T>& values) {
    for (const T value : values) {
      bytes_.append(sizeof(T), '\0');
      put<T>(static_cast<int>(bytes_.size() - sizeof(T)), value);
    }
    return *this;
  }
  template <class T>
  NiftiBytes& put(int offset, T value) {
    char* const to = bytes_.data() + offset;
    std::memcpy(to, &value, sizeof(T));
    if (big_) std::reverse(to, to + sizeof(T));  // this machine is a little-endian one
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void real(int first, int second, int index, double value) {
    second_ ? put<double>(second + 8 * index, value)
            : put<float>(first + 4 * index, static_cast<float>(value));
  }

  bool second_, big_;
  std::string bytes_;
};

}  // namespace tessera

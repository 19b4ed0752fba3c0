#include "tessera/images/npy_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/images/npy_dictionary.h"

namespace tessera {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

/// NumPy's letter for the kind of a number and its bytes, after the letter of the byte order.
struct TypeCode {
  PixelType type;
  std::string_view code;
};

constexpr std::array<TypeCode, 12> kTypeCodes{{{PixelType::kFloat16, "f2"},
                                               {PixelType::kFloat32, "f4"},
                                               {PixelType::kFloat64, "f8"},
                                               {PixelType::kUint8, "u1"},
                                               {PixelType::kUint8, "b1"},
                                               {PixelType::kInt8, "i1"},
                                               {PixelType::kUint16, "u2"},
                                               {PixelType::kInt16, "i2"},
                                               {PixelType::kUint32, "u4"},
                                               {PixelType::kInt32, "i4"},
                                               {PixelType::kUint64, "u8"},
                                               {PixelType::kInt64, "i8"}}};

/// Sets type and byte order.
void take_type(const std::string& descr, const std::string& file, FlatLayout* layout) {
  const std::string_view order = "<>|=";
  if (descr.size() == 3 && order.find(descr[0]) != std::string_view::npos) {
    layout->swap_bytes = descr[0] == '>' && descr[2] != '1';
    for (const TypeCode& known : kTypeCodes)
      if (std::string_view(descr).substr(1) == known.code) {
        layout->type = known.type;
        return;
      }
  }
  if (descr.find('O') != std::string::npos)
    throw_error<InvalidInput>(
        "[npy] {}: type '{}' holds Python objects; store numbers, such as array.astype('<f4')",
        file, descr);
  throw_error<InvalidInput>(
      "[npy] {}: type '{}' is not supported; use floats of 2, 4 or 8 bytes, integers of 1, 2, 4 or "
      "8 bytes, or bool",
      file, descr);
}

/// Where the dictionary lies, from the fixed bytes at the beginning.
Range dictionary_range(const char* data, int64_t size, const std::string& file) {
  if (size < 10)
    throw_error<InvalidInput>(
        "[npy] {}: {} bytes are too few for a .npy file; it is truncated, or not one", file, size);
  if (std::string_view(data, kMagic.size()) != kMagic)
    throw_error<InvalidInput>(
        "[npy] {}: is not a .npy file (it does not begin with \\x93NUMPY); "
        "write it with numpy.save",
        file);
  const int major = static_cast<unsigned char>(data[6]),
            minor = static_cast<unsigned char>(data[7]);
  if ((major != 1 && major != 2) || minor != 0)
    throw_error<InvalidInput>("[npy] {}: format version {}.{}; Tessera reads 1.0 and 2.0", file,
                              major, minor);
  const int num_length_bytes = major == 1 ? 2 : 4;
  if (size < 8 + num_length_bytes)
    throw_error<InvalidInput>("[npy] {}: the header is truncated after {} bytes", file, size);
  int64_t length = 0;
  for (int i = 0; i < num_length_bytes; ++i)
    length |= static_cast<int64_t>(static_cast<unsigned char>(data[8 + i])) << (8 * i);
  return Range{0, length}.shifted(8 + num_length_bytes);
}

}  // namespace

FlatLayout parse_npy_header(const char* data, int64_t size, int64_t file_bytes,
                            const std::string& name) {
  const Range text = dictionary_range(data, size, name);
  if (text.end > file_bytes)
    throw_error<InvalidInput>(
        "[npy] {}: the header claims to end at byte {}, the file at {}; it is truncated or corrupt",
        name, text.end, file_bytes);
  if (text.end > size)
    throw_error<InvalidInput>(
        "[npy] {}: a header of {} bytes is longer than the {} that Tessera "
        "reads; the file is corrupt",
        name, text.size(), size);
  const NpyDictionary dictionary = parse_npy_dictionary(
      std::string_view(data + text.begin, static_cast<size_t>(text.size())), name);
  if (dictionary.shape.size() > static_cast<size_t>(Box::kMaxAxes))
    throw_error<InvalidInput>("[npy] {}: shape {} has {} axes; at most {} are supported", name,
                              to_string(dictionary.shape), dictionary.shape.size(),
                              int{Box::kMaxAxes});
  FlatLayout layout;
  layout.offset = text.end;
  layout.shape = dictionary.shape;
  layout.fortran_order = dictionary.fortran_order;
  take_type(dictionary.descr, name, &layout);
  const int64_t expected = checked_array_bytes(layout.shape, layout.type, "npy", name);
  if (file_bytes - text.end != expected)
    throw_error<InvalidInput>(
        "[npy] {}: shape {} of {} needs {} bytes of data, the file has {}; it is {}", name,
        to_string(layout.shape), name_of(layout.type), expected, file_bytes - text.end,
        file_bytes - text.end < expected ? "truncated" : "not a single array, or corrupt");
  return layout;
}

std::string format_npy_header(PixelType type, const Shape& shape) {
  std::string sizes;
  for (int64_t size : shape) sizes += fmt::format("{}, ", size);
  const auto known = std::ranges::find(kTypeCodes, type, &TypeCode::type);
  std::string dictionary =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                  bytes_of(type) == 1 ? '|' : '<', known->code, sizes);
  const size_t prefix = kMagic.size() + 4;
  const size_t total = (prefix + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.resize(total - prefix - 1, ' ');
  std::string text(kMagic);
  text += std::string("\x01\x00", 2);
  text += static_cast<char>((dictionary.size() + 1) & 0xff);
  text += static_cast<char>((dictionary.size() + 1) >> 8);
  return text + dictionary + '\n';
}

}  // namespace tessera

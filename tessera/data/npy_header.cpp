#include "tessera/data/npy_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/data/npy_dictionary.h"

namespace tessera {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct TypeName {
  NpyType type;
  const char* name;
  int64_t bytes;
};

constexpr std::array<TypeName, 7> kTypes{{{NpyType::kFloat32, "<f4", 4},
                                          {NpyType::kFloat64, "<f8", 8},
                                          {NpyType::kUint8, "|u1", 1},
                                          {NpyType::kUint16, "<u2", 2},
                                          {NpyType::kInt16, "<i2", 2},
                                          {NpyType::kInt32, "<i4", 4},
                                          {NpyType::kInt64, "<i8", 8}}};

const TypeName& entry(NpyType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(),
                       [&](const TypeName& known) { return known.type == type; });
}

NpyType type_called(const std::string& descr, const std::string& file) {
  for (const TypeName& known : kTypes)
    if (descr == known.name) return known.type;
  if (descr == "<u1") return NpyType::kUint8;
  if (descr.size() > 1 && descr[0] == '>')
    throw_error<InvalidInput>(
        "[npy] {}: type '{}' is big endian; store little endian, such as array.astype('<{}')", file,
        descr, descr.substr(1));
  if (descr.find('O') != std::string::npos)
    throw_error<InvalidInput>(
        "[npy] {}: type '{}' holds Python objects; store numbers, such as array.astype('<f4')",
        file, descr);
  throw_error<InvalidInput>(
      "[npy] {}: type '{}' is not supported; use <f4, <f8, |u1, <u2, <i2, <i4 or <i8", file, descr);
}

/// Bytes of the elements; refuses what no file can hold.
int64_t checked_bytes(const Shape& shape, int64_t element_bytes, const std::string& file) {
  int64_t bytes = element_bytes;
  for (int64_t size : shape) {
    if (size < 0)
      throw_error<InvalidInput>("[npy] {}: shape {} has a negative size", file, to_string(shape));
    if (__builtin_mul_overflow(bytes, size, &bytes))
      throw_error<InvalidInput>("[npy] {}: shape {} has more bytes than 64 bits count", file,
                                to_string(shape));
  }
  return bytes;
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

int64_t npy_element_bytes(NpyType type) { return entry(type).bytes; }
const char* npy_type_name(NpyType type) { return entry(type).name; }

int64_t NpyHeader::num_elements() const {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

NpyHeader parse_npy_header(const char* data, int64_t size, int64_t file_bytes,
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
  if (dictionary.fortran_order)
    throw_error<InvalidInput>(
        "[npy] {}: the array is in Fortran order; store numpy.ascontiguousarray(array)", name);
  if (dictionary.shape.size() > static_cast<size_t>(Box::kMaxAxes))
    throw_error<InvalidInput>("[npy] {}: shape {} has {} axes; at most {} are supported", name,
                              to_string(dictionary.shape), dictionary.shape.size(),
                              int{Box::kMaxAxes});
  NpyHeader header{type_called(dictionary.descr, name), dictionary.shape, text.end};
  const int64_t expected = checked_bytes(header.shape, npy_element_bytes(header.type), name);
  if (file_bytes - text.end != expected)
    throw_error<InvalidInput>(
        "[npy] {}: shape {} of {} needs {} bytes of data, the file has {}; it is {}", name,
        to_string(header.shape), npy_type_name(header.type), expected, file_bytes - text.end,
        file_bytes - text.end < expected ? "truncated" : "not a single array, or corrupt");
  return header;
}

std::string format_npy_header(const NpyHeader& header) {
  std::string shape;
  for (int64_t size : header.shape) shape += fmt::format("{}, ", size);
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                       npy_type_name(header.type), shape);
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

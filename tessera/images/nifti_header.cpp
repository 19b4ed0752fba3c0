#include "tessera/images/nifti_header.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/images/nifti_frame.h"

namespace tessera {
namespace {

constexpr std::array<size_t, 2> kHeaderBytes{348, 540};  // of version 1 and 2
constexpr int kMaxDims = 7;
constexpr int16_t kRgb = 128, kRgba = 2304;

struct NiftiType {
  int16_t code;
  PixelType type;
};
constexpr std::array<NiftiType, 12> kNiftiTypes{{{2, PixelType::kUint8},
                                                 {4, PixelType::kInt16},
                                                 {8, PixelType::kInt32},
                                                 {16, PixelType::kFloat32},
                                                 {64, PixelType::kFloat64},
                                                 {kRgb, PixelType::kUint8},
                                                 {256, PixelType::kInt8},
                                                 {512, PixelType::kUint16},
                                                 {768, PixelType::kUint32},
                                                 {1024, PixelType::kInt64},
                                                 {1280, PixelType::kUint64},
                                                 {kRgba, PixelType::kUint8}}};

/// Where a field lies in each version, and with which type: integers and reals are wider in the
/// second.
struct NiftiField {
  int first, second;
};
constexpr NiftiField kDim{40, 16}, kDatatype{70, 12}, kBitpix{72, 14}, kPixdim{76, 104},
    kVoxOffset{108, 168}, kSlope{112, 176}, kInter{116, 184}, kUnits{123, 500},
    kQformCode{252, 344}, kSformCode{254, 348}, kQuatern{256, 352}, kQoffset{268, 376},
    kSrow{280, 400}, kMark{344, 4};
constexpr std::string_view kMark1{"n+1\0", 4}, kMark2{"n+2\0\r\n\x1a\n", 8};

int channels_of(int16_t code) { return code == kRgb ? 3 : code == kRgba ? 4 : 1; }

/// Reads fields of either version and byte order.
class NiftiFields {
 public:
  NiftiFields(std::string_view data, const std::string& name) : data_(data) {
    uint32_t length = 0;
    if (data.size() >= kHeaderBytes[0]) std::memcpy(&length, data.data(), sizeof(length));
    for (const bool swapped : {false, true}) {
      const uint32_t size = swapped ? __builtin_bswap32(length) : length;
      const auto* const known = std::ranges::find(kHeaderBytes, size_t{size});
      if (known == kHeaderBytes.end()) continue;
      second_ = known != kHeaderBytes.begin();
      swapped_ = swapped;
      if (data.size() < size) continue;
      check_mark(name);
      return;
    }
    throw_error<InvalidInput>(
        "[nifti] {}: is not a NIfTI file, or a truncated one: it does not begin with a header of "
        "348 or 540 bytes",
        name);
  }

  bool second() const { return second_; }
  bool swapped() const { return swapped_; }
  int16_t short_at(NiftiField field) const { return get<int16_t>(field, 0); }
  int64_t code_at(NiftiField field) const {
    return second_ ? get<int32_t>(field, 0) : get<int16_t>(field, 0);
  }
  int64_t units() const { return second_ ? get<int32_t>(kUnits, 0) : get<uint8_t>(kUnits, 0); }
  int64_t dim(int i) const { return second_ ? get<int64_t>(kDim, i) : get<int16_t>(kDim, i); }
  double real(NiftiField field, int i = 0) const {
    return second_ ? get<double>(field, i) : static_cast<double>(get<float>(field, i));
  }
  /// NaN where it is not a position in a file.
  double vox_offset() const {
    return second_ ? static_cast<double>(get<int64_t>(kVoxOffset, 0)) : real(kVoxOffset);
  }

 private:
  void check_mark(const std::string& name) const {
    const std::string_view mark = second_ ? kMark2 : kMark1;
    const std::string_view found = data_.substr(second_ ? kMark.second : kMark.first, mark.size());
    if (found == mark) return;
    if (found.starts_with("ni"))
      throw_error<InvalidInput>(
          "[nifti] {}: is the header of a pair of files; store both as one, such as with "
          "nibabel.save(image, 'x.nii')",
          name);
    throw_error<InvalidInput>(
        "[nifti] {}: is not a NIfTI file: its mark is missing (an ANALYZE file has none; convert "
        "it to NIfTI)",
        name);
  }

  template <class T>
  T get(NiftiField field, int index) const {
    std::array<char, sizeof(T)> bytes;
    std::memcpy(bytes.data(),
                data_.data() + (second_ ? field.second : field.first) +
                    static_cast<size_t>(index) * sizeof(T),
                sizeof(T));
    if (swapped_) std::ranges::reverse(bytes);
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  std::string_view data_;
  bool second_ = false, swapped_ = false;
};

/// The sizes x y z t u, those that the file does not have being 1. Sets how many it has.
std::array<int64_t, 5> nifti_sizes(const NiftiFields& fields, const std::string& name,
                                   int* num_dims) {
  const int64_t stated = fields.dim(0);
  if (stated < 1 || stated > kMaxDims)
    throw_error<InvalidInput>("[nifti] {}: the header has {} axes; legal: 1 to {}", name, stated,
                              kMaxDims);
  *num_dims = static_cast<int>(stated);
  std::array<int64_t, 5> sizes{1, 1, 1, 1, 1};
  for (int i = 1; i <= *num_dims; ++i) {
    const int64_t size = fields.dim(i);
    if (size < 1)
      throw_error<InvalidInput>("[nifti] {}: axis {} of the header has {} voxels; at least 1", name,
                                i, size);
    if (i > 5 && size > 1)
      throw_error<InvalidInput>(
          "[nifti] {}: axis {} of the header has {} voxels; Tessera reads x, y, z, time and one "
          "axis more",
          name, i, size);
    if (i <= 5) sizes[static_cast<size_t>(i - 1)] = size;
  }
  return sizes;
}

void take_axes(const NiftiFields& fields, const std::string& name, int channels,
               NiftiHeader* header) {
  int num_dims = 0;
  const auto [x, y, z, t, u] = nifti_sizes(fields, name, &num_dims);
  const auto add = [&](char axis, int64_t size) {
    header->axes += axis;
    header->layout.shape.push_back(size);
  };
  if (u > 1) add('C', u);
  if (t > 1) add('P', t);
  if (num_dims > 2) add('Z', z);
  add('Y', y);
  add('X', x);
  if (channels == 1) return;
  if (u > 1)
    throw_error<InvalidInput>(
        "[nifti] {}: has {} values a voxel, each of {} colours; Tessera reads one or the other",
        name, u, channels);
  add('C', channels);
}

int take_datatype(const NiftiFields& fields, const std::string& name, NiftiHeader* header) {
  const int16_t code = fields.short_at(kDatatype);
  const auto known = std::ranges::find(kNiftiTypes, code, &NiftiType::code);
  if (known == kNiftiTypes.end())
    throw_error<InvalidInput>(
        "[nifti] {}: datatype {} is not supported; use integers or floats of at most 64 bits, or "
        "RGB of 8 bits each",
        name, code);
  header->layout.type = known->type;
  header->layout.swap_bytes = fields.swapped();
  const int channels = channels_of(code);
  const int64_t bits = 8 * channels * bytes_of(known->type);
  if (fields.short_at(kBitpix) != bits)
    throw_error<InvalidInput>(
        "[nifti] {}: datatype {} has {} bits a voxel, the header says {}; it is corrupt", name,
        code, bits, fields.short_at(kBitpix));
  return channels;
}

void take_scale(const NiftiFields& fields, const std::string& name, NiftiHeader* header) {
  const double slope = fields.real(kSlope), intercept = fields.real(kInter);
  if (slope == 0 || !std::isfinite(slope)) return;  // "not scaled", by the standard
  if (!std::isfinite(intercept))
    throw_error<InvalidInput>("[nifti] {}: scl_inter is {}; set it to a number, such as 0", name,
                              intercept);
  header->scale = {slope, intercept};
}

NiftiFrameFields frame_fields(const NiftiFields& fields) {
  NiftiFrameFields result;
  for (int i = 0; i < 4; ++i) result.pixdim[i] = fields.real(kPixdim, i);
  result.units = fields.units();
  result.qform_code = fields.code_at(kQformCode);
  result.sform_code = fields.code_at(kSformCode);
  for (int i = 0; i < 3; ++i) result.quaternion[i] = fields.real(kQuatern, i);
  for (int i = 0; i < 3; ++i) result.offset[i] = fields.real(kQoffset, i);
  for (int i = 0; i < 12; ++i) result.srow[i] = fields.real(kSrow, i);
  return result;
}

/// The sizes x y z t u of an array to write, and its type's code.
struct WrittenNifti {
  std::array<int64_t, 5> sizes{1, 1, 1, 1, 1};
  int num_dims = 2;
  int16_t code = 0;
};

WrittenNifti written_as(const ArrayInfo& info, const std::string& name) {
  WrittenNifti result;
  std::string axes = info.axes;
  const bool colours = axes.size() > 1 && axes.back() == 'C';
  if (colours) axes.pop_back();
  constexpr std::string_view kOrder = "XYZPC";  // of the file
  size_t last = kOrder.size();
  bool legal = axes.ends_with("YX") && info.axes.size() == info.shape.size();
  for (size_t i = 0; legal && i < axes.size(); ++i) {
    const size_t place = kOrder.find(axes[i]);
    legal = place < last;
    last = place;
    if (!legal || info.shape[i] < 1) break;
    result.sizes[place] = info.shape[i];
    result.num_dims = std::max(result.num_dims, static_cast<int>(place) + 1);
  }
  if (!legal)
    throw_error<InvalidInput>(
        "[nifti] {}: axes '{}' of {} cannot be written; legal: some of C P Z before Y X, in that "
        "order",
        name, info.axes, to_string(info.shape));
  if (colours && (info.shape.back() != 3 || info.type != PixelType::kUint8 || result.sizes[4] > 1))
    throw_error<InvalidInput>(
        "[nifti] {}: {} channels of {} in the last axis; NIfTI has 3 of uint8 there (RGB); other "
        "channels go first",
        name, info.shape.back(), name_of(info.type));
  const auto known = std::ranges::find(kNiftiTypes, info.type, &NiftiType::type);
  if (known == kNiftiTypes.end())
    throw_error<InvalidInput>("[nifti] {}: NIfTI has no {}; write float32", name,
                              name_of(info.type));
  result.code = colours ? kRgb : known->code;
  return result;
}

/// Writes fields in the machine's byte order.
class NiftiWords {
 public:
  explicit NiftiWords(bool second) : second_(second), bytes_(kHeaderBytes[second] + 4, '\0') {
    set(0, static_cast<int32_t>(kHeaderBytes[second]));
    const std::string_view mark = second ? kMark2 : kMark1;
    bytes_.replace(static_cast<size_t>(at(kMark)), mark.size(), mark);
  }
  void set_short(NiftiField field, int16_t value) { set(at(field), value); }
  void set_code(NiftiField field, int value) {
    second_ ? set(at(field), int32_t{value}) : set(at(field), static_cast<int16_t>(value));
  }
  void set_units(int value) {
    second_ ? set(at(kUnits), int32_t{value}) : set(at(kUnits), static_cast<uint8_t>(value));
  }
  void set_dim(int i, int64_t value) {
    second_ ? set(at(kDim) + 8 * i, value) : set(at(kDim) + 2 * i, static_cast<int16_t>(value));
  }
  void set_real(NiftiField field, int i, double value) {
    second_ ? set(at(field) + 8 * i, value) : set(at(field) + 4 * i, static_cast<float>(value));
  }
  void set_offset() {
    second_ ? set(at(kVoxOffset), std::ssize(bytes_))
            : set(at(kVoxOffset), static_cast<float>(bytes_.size()));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  int at(NiftiField field) const { return second_ ? field.second : field.first; }
  template <class T>
  void set(int offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
  }

  const bool second_;
  std::string bytes_;  // four zero bytes at the end: no extensions
};

void write_frame(const NiftiFrameFields& frame, NiftiWords* words) {
  for (int i = 0; i < 4; ++i) words->set_real(kPixdim, i, frame.pixdim[i]);
  for (int i = 4; i <= kMaxDims; ++i) words->set_real(kPixdim, i, 1);
  words->set_units(static_cast<int>(frame.units));
  words->set_code(kQformCode, static_cast<int>(frame.qform_code));
  words->set_code(kSformCode, static_cast<int>(frame.sform_code));
  for (int i = 0; i < 3; ++i) words->set_real(kQuatern, i, frame.quaternion[i]);
  for (int i = 0; i < 3; ++i) words->set_real(kQoffset, i, frame.offset[i]);
  for (int i = 0; i < 12; ++i) words->set_real(kSrow, i, frame.srow[i]);
}

}  // namespace

NiftiHeader parse_nifti_header(std::string_view data, const std::string& name) {
  const NiftiFields fields(data, name);
  NiftiHeader header;
  const int channels = take_datatype(fields, name, &header);
  take_axes(fields, name, channels, &header);
  header.data_bytes = checked_array_bytes(header.layout.shape, header.layout.type, "nifti", name);
  const double offset = fields.vox_offset();
  const auto least = static_cast<double>(kHeaderBytes[fields.second()]);
  // A header is followed by extensions of any length; a petabyte of them is none.
  if (!(offset >= least && offset <= 0x1p50) || offset != std::floor(offset))
    throw_error<InvalidInput>("[nifti] {}: the voxels begin at byte {}; at least {}", name, offset,
                              least);
  header.layout.offset = static_cast<int64_t>(offset);
  if (header.data_bytes > std::numeric_limits<int64_t>::max() - header.layout.offset)
    throw_error<InvalidInput>("[nifti] {}: shape {} has more bytes than 64 bits count", name,
                              to_string(header.layout.shape));
  if (channels == 1) take_scale(fields, name, &header);
  header.frame = frame_of(frame_fields(fields), header.axes.find('Z') != std::string::npos);
  return header;
}

std::string format_nifti_header(const ArrayInfo& info, const std::string& name) {
  const WrittenNifti written = written_as(info, name);
  checked_array_bytes(info.shape, info.type, "nifti", name);
  NiftiWords words(std::ranges::max(written.sizes) > std::numeric_limits<int16_t>::max());
  words.set_dim(0, written.num_dims);
  for (int i = 1; i <= kMaxDims; ++i)
    words.set_dim(i, i <= 5 ? written.sizes[static_cast<size_t>(i - 1)] : 1);
  words.set_short(kDatatype, written.code);
  words.set_short(kBitpix,
                  static_cast<int16_t>(8 * channels_of(written.code) * bytes_of(info.type)));
  words.set_offset();
  words.set_real(kSlope, 0, 1);
  write_frame(fields_of(info.frame), &words);
  return words.bytes();
}

}  // namespace tessera

// HDF5 by its C interface. Hyperslabs are boxes; filters and byte orders are the library's
// business.
//
// A file may lead to others: by links, by raw data beside it, by virtual arrays. Reading one file
// must not read another, so all three are refused.

#include <fmt/ranges.h>

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/suggestion.h"
#include "tessera/files/input_file.h"
#include "tessera/images/flat_array.h"
#include "tessera/images/formats.h"
#include "tessera/images/reader_process.h"

namespace tessera {
namespace {

// A chunk may have 4 GiB, packed and unpacked.
constexpr int64_t kHdf5Memory = int64_t{10} << 30;
constexpr size_t kChunkCacheBytes = 16 << 20;
constexpr size_t kChunkCacheSlots = 4099;
constexpr size_t kMostNamesShown = 20;
constexpr size_t kMostObjects = 100'000;

/// The innermost reason of the library's last failure.
std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned position, const H5E_error2_t* error, void* to) -> herr_t {
        if (position == 0 && error->desc != nullptr) *static_cast<std::string*>(to) = error->desc;
        return 0;
      },
      &reason);
  return reason.empty() ? "the library gives no reason" : reason;
}

/// An identifier of the library, closed at its end.
class Hdf5Id {
 public:
  Hdf5Id(hid_t id, herr_t (*close)(hid_t), const std::string& path, const char* attempt)
      : id_(id), close_(close) {
    if (id < 0)
      throw_error<InvalidInput>("[hdf5] {}: cannot {} ({})", path, attempt, hdf5_reason());
  }
  Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Id& operator=(Hdf5Id&&) = delete;
  ~Hdf5Id() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void check_hdf5(herr_t result, const std::string& path, const char* attempt) {
  if (result < 0)
    throw_error<InvalidInput>("[hdf5] {}: cannot {} ({})", path, attempt, hdf5_reason());
}

/// Keeps the library from opening what an external link names.
herr_t refuse_external_link(const char*, const char*, const char*, const char*, unsigned*, hid_t,
                            void*) {
  return -1;
}

Hdf5Id open_hdf5_file(const std::string& path) {
  const InputFile is_regular(path, "hdf5");
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, path, "open the file");
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access, false, true);  // nothing is written, and some file systems have none
#endif
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose, path,
          "open the file: it is not HDF5, or damaged"};
}

bool is_number_class(H5T_class_t kind) {
  return kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM;
}

struct Hdf5Names {
  std::vector<std::string> numeric = {};
  size_t num_objects = 0;
};

herr_t collect_numeric(hid_t root, const char* name, const H5O_info_t* info, void* to) {
  auto* const names = static_cast<Hdf5Names*>(to);
  if (++names->num_objects > kMostObjects) return -1;
  if (info->type != H5O_TYPE_DATASET) return 0;
  const hid_t dataset = H5Dopen2(root, name, H5P_DEFAULT);
  if (dataset < 0) return 0;
  const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
  if (type >= 0 && space >= 0 && is_number_class(H5Tget_class(type)) &&
      H5Sget_simple_extent_ndims(space) > 0)
    names->numeric.emplace_back(name);
  if (type >= 0) H5Tclose(type);
  if (space >= 0) H5Sclose(space);
  H5Dclose(dataset);
  return 0;
}

/// All arrays of numbers in the file; links are not followed.
std::vector<std::string> numeric_arrays(hid_t file, const std::string& path) {
  Hdf5Names names;
  check_hdf5(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, collect_numeric, &names), path,
             "list what the file holds");
  return names.numeric;
}

std::string shown_names(std::vector<std::string> names) {
  const size_t more = names.size() > kMostNamesShown ? names.size() - kMostNamesShown : 0;
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string chosen_array(hid_t file, const std::string& path, const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const std::vector<std::string> names = numeric_arrays(file, path);
  if (names.empty()) throw_error<InvalidInput>("[hdf5] {}: holds no array of numbers", path);
  if (names.size() > 1)
    throw_error<InvalidInput>("[hdf5] {}: holds {} arrays; name one of them: {}", path,
                              names.size(), shown_names(names));
  return names.front();
}

Hdf5Id open_hdf5_array(hid_t file, const std::string& path, const std::string& name) {
  const Hdf5Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, path, "open an array");
  H5Pset_elink_cb(access, refuse_external_link, nullptr);
  H5Pset_chunk_cache(access, kChunkCacheSlots, kChunkCacheBytes, 1);
  const hid_t array = H5Dopen2(file, name.c_str(), access);
  if (array < 0) {
    const std::string reason = hdf5_reason();
    const std::vector<std::string> names = numeric_arrays(file, path);
    throw_error<InvalidInput>(
        "[hdf5] {}: array '{}' cannot be opened ({}){}; links to other files are refused; it holds "
        "{}",
        path, name, reason, did_you_mean(name, names),
        names.empty() ? "no array of numbers" : shown_names(names));
  }
  return {array, H5Dclose, path, "open an array"};
}

/// How an array is stored.
Hdf5Id hdf5_creation_of(hid_t array, const std::string& path) {
  return {H5Dget_create_plist(array), H5Pclose, path, "look at an array"};
}

void refuse_other_files(hid_t creation, const std::string& path, const std::string& name) {
  const H5D_layout_t layout = H5Pget_layout(creation);
  if (layout == H5D_VIRTUAL || H5Pget_external_count(creation) > 0)
    throw_error<InvalidInput>(
        "[hdf5] {}: array '{}' lies in other files; copy it into one, such as with h5repack", path,
        name);
}

struct Hdf5Type {
  PixelType type;
  hid_t memory;  // the library's own, never closed
};

Hdf5Type hdf5_integer(size_t bytes, bool is_signed) {
  if (bytes == 1)
    return is_signed ? Hdf5Type{PixelType::kInt8, H5T_NATIVE_INT8}
                     : Hdf5Type{PixelType::kUint8, H5T_NATIVE_UINT8};
  if (bytes == 2)
    return is_signed ? Hdf5Type{PixelType::kInt16, H5T_NATIVE_INT16}
                     : Hdf5Type{PixelType::kUint16, H5T_NATIVE_UINT16};
  if (bytes <= 4)
    return is_signed ? Hdf5Type{PixelType::kInt32, H5T_NATIVE_INT32}
                     : Hdf5Type{PixelType::kUint32, H5T_NATIVE_UINT32};
  return is_signed ? Hdf5Type{PixelType::kInt64, H5T_NATIVE_INT64}
                   : Hdf5Type{PixelType::kUint64, H5T_NATIVE_UINT64};
}

Hdf5Type hdf5_type_of(hid_t array, const std::string& path, const std::string& name) {
  const Hdf5Id type(H5Dget_type(array), H5Tclose, path, "read an array's type");
  const H5T_class_t kind = H5Tget_class(type);
  const size_t bytes = H5Tget_size(type);
  if (kind == H5T_INTEGER && bytes <= 8)
    return hdf5_integer(bytes, H5Tget_sign(type) != H5T_SGN_NONE);
  // h5py writes bool as names for 0 and 1.
  if (kind == H5T_ENUM && bytes == 1) return {PixelType::kUint8, -1};
  if (kind == H5T_FLOAT && bytes <= 4) return {PixelType::kFloat32, H5T_NATIVE_FLOAT};
  if (kind == H5T_FLOAT && bytes == 8) return {PixelType::kFloat64, H5T_NATIVE_DOUBLE};
  throw_error<InvalidInput>(
      "[hdf5] {}: array '{}' holds something else than integers or floats of at most 64 bits, or "
      "bool",
      path, name);
}

Shape hdf5_shape_of(hid_t array, const std::string& path, const std::string& name) {
  const Hdf5Id space(H5Dget_space(array), H5Sclose, path, "read an array's shape");
  const int num_axes = H5Sget_simple_extent_ndims(space);
  if (num_axes < 1 || num_axes > Box::kMaxAxes)
    throw_error<InvalidInput>("[hdf5] {}: array '{}' has {} axes; legal: 1 to {}", path, name,
                              num_axes, int{Box::kMaxAxes});
  std::array<hsize_t, H5S_MAX_RANK> sizes{};
  check_hdf5(H5Sget_simple_extent_dims(space, sizes.data(), nullptr), path,
             "read an array's shape");
  Shape shape;
  for (int axis = 0; axis < num_axes; ++axis)
    shape.push_back(static_cast<int64_t>(sizes[static_cast<size_t>(axis)]));
  return shape;
}

/// The sizes of its chunks; empty where it has none.
Shape hdf5_chunk_of(hid_t creation, const Shape& shape, const std::string& path) {
  if (H5Pget_layout(creation) != H5D_CHUNKED) return {};
  std::array<hsize_t, H5S_MAX_RANK> sizes{};
  const int num_axes = H5Pget_chunk(creation, H5S_MAX_RANK, sizes.data());
  if (num_axes != static_cast<int>(shape.size()))
    throw_error<InvalidInput>("[hdf5] {}: chunks of {} axes in an array of {}; it is damaged", path,
                              num_axes, shape.size());
  Shape chunk;
  // An array that may grow can have chunks larger than itself.
  for (size_t axis = 0; axis < shape.size(); ++axis)
    chunk.push_back(std::clamp<int64_t>(static_cast<int64_t>(sizes[axis]), 1, shape[axis]));
  return chunk;
}

class Hdf5ArrayFile final : public ArrayFile {
 public:
  Hdf5ArrayFile(const std::string& path, const ArrayOptions& options)
      : ArrayFile(path),
        file_(open_hdf5_file(path)),
        name_(chosen_array(file_, path, options.dataset)),
        array_(open_hdf5_array(file_, path, name_)) {
    const Hdf5Id creation = hdf5_creation_of(array_, path);
    refuse_other_files(creation, path, name_);
    const Hdf5Type type = hdf5_type_of(array_, path, name_);
    memory_type_ = type.memory;
    info_.type = type.type;
    info_.shape = hdf5_shape_of(array_, path, name_);
    for (const int64_t size : info_.shape)
      if (size < 1)
        throw_error<InvalidInput>("[hdf5] {}: array '{}' is empty: {}", path, name_,
                                  to_string(info_.shape));
    checked_array_bytes(info_.shape, info_.type, "hdf5", path);
    info_.block = hdf5_chunk_of(creation, info_.shape, path);
  }

  void read(const Box& box, void* to) const override {
    if (box.empty()) return;
    std::vector<hsize_t> begin, size;
    for (int axis = 0; axis < box.num_axes(); ++axis) {
      begin.push_back(static_cast<hsize_t>(box[axis].begin));
      size.push_back(static_cast<hsize_t>(box[axis].size()));
    }
    const Hdf5Id in_file(H5Dget_space(array_), H5Sclose, path(), "read a box");
    check_hdf5(
        H5Sselect_hyperslab(in_file, H5S_SELECT_SET, begin.data(), nullptr, size.data(), nullptr),
        path(), "read a box");
    const Hdf5Id in_memory(H5Screate_simple(box.num_axes(), size.data(), nullptr), H5Sclose, path(),
                           "read a box");
    // Names for numbers are read as they are stored: a byte each.
    const Hdf5Id stored(H5Dget_type(array_), H5Tclose, path(), "read a box");
    check_hdf5(H5Dread(array_, memory_type_ < 0 ? hid_t{stored} : memory_type_, in_memory, in_file,
                       H5P_DEFAULT, to),
               path(), "read a box: the file is damaged, or a filter is missing");
  }

 private:
  const Hdf5Id file_;
  const std::string name_;
  const Hdf5Id array_;
  hid_t memory_type_ = -1;
};

std::unique_ptr<ArrayFile> open_hdf5_here(const std::string& path, const ArrayOptions& options) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // what goes wrong is in our message
  return std::make_unique<Hdf5ArrayFile>(path, options);
}

}  // namespace

std::unique_ptr<ArrayFile> open_hdf5(const std::string& path, const ArrayOptions& options) {
  return open_in_reader(path, options, open_hdf5_here, kHdf5Memory);
}

}  // namespace tessera

#include "tessera/import/archive.h"

#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/serialization/import.h>

#include <map>
#include <memory>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/import/zip_directory.h"

namespace tessera {
namespace {

constexpr const char* kHowToSave =
    "save the model with torch.jit.script(model).save('model.pt') or torch.jit.trace";

/// The reader's own words, unless they are about its internals.
std::string reason(const std::exception& error) {
  const std::string words = error.what();
  for (const char* inside :
       {"INTERNAL ASSERT", "std::", "vector::", "_M_", "basic_string", "map::"})
    if (words.find(inside) != std::string::npos) return "its parts do not fit together";
  return words.substr(0, words.find('\n'));
}

constexpr int64_t kMostCode = 64 << 20;  // of one record; the code of a large network is 1 MiB

/// A name may have 65535 letters.
std::string shortened_name(const std::string& name) {
  constexpr size_t kMost = 80;
  return name.size() <= kMost ? name : name.substr(0, kMost) + "...";
}

/// The bytes of a file for LibTorch's reader.
class BytesReader final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit BytesReader(std::string_view bytes) : bytes_(bytes) {}
  size_t size() const override { return bytes_.size(); }
  size_t read(uint64_t position, void* buffer, size_t bytes, const char* /*what*/) const override {
    if (position > bytes_.size()) return 0;
    return bytes_.copy(static_cast<char*>(buffer), bytes, position);
  }

 private:
  std::string_view bytes_;
};

/// A record's name without the archive's own folder, in lower case: TorchScript finds records
/// whatever their case, so what it takes for code must be seen here.
std::string record_name(const ZipRecord& record) {
  return lower_case(std::string_view(record.name).substr(record.name.find('/') + 1));
}

/// All records lie in one folder, which LibTorch takes from the first of them.
void check_one_folder(const std::vector<ZipRecord>& records) {
  const std::string folder = records[0].name.substr(0, records[0].name.find('/') + 1);
  for (const ZipRecord& record : records)
    if (folder.empty() || !record.name.starts_with(folder))
      throw_error<InvalidInput>("its records do not lie in one folder");
}

/// Code that would run while the file is read. The closed child confines it; the user is told.
void check_code(std::string_view bytes, const std::vector<ZipRecord>& records,
                const std::string& path) {
  caffe2::serialize::PyTorchStreamReader reader(std::make_shared<BytesReader>(bytes));
  bool has_code = false;
  for (const ZipRecord& record : records) {
    const std::string name = record_name(record);
    if (!name.ends_with(".py")) continue;
    has_code = has_code || name.starts_with("code/");
    if (record.size > kMostCode)
      throw_error<InvalidInput>("{} unpacks to {} bytes of code", shortened_name(record.name),
                                record.size);
    const auto [data, size] = reader.getRecord(record.name.substr(record.name.find('/') + 1));
    const std::string_view code(static_cast<const char*>(data.get()), size);
    if (code.find("__setstate__") != std::string_view::npos)
      throw_error<Unsupported>(
          "[{}] {} defines __setstate__, code that runs while the file is read (quantized and "
          "packed layers do); save the plain float model",
          path, shortened_name(record.name));
  }
  if (!has_code)
    throw_error<InvalidInput>("[{}] holds weights but no code (torch.save writes such files); {}",
                              path, kHowToSave);
}

}  // namespace

void check_bounds(const at::Tensor& tensor, const std::string& name) {
  if (!tensor.defined() || tensor.layout() != at::kStrided) return;
  constexpr int64_t kMax = int64_t{1} << 48;
  int64_t last = tensor.storage_offset();
  bool fits = last >= 0 && last < kMax;
  bool empty = false;
  for (int64_t axis = 0; axis < tensor.dim() && fits; ++axis) {
    const int64_t size = tensor.size(axis), stride = tensor.stride(axis);
    fits = size >= 0 && stride >= 0 && size < kMax && stride < kMax &&
           (size == 0 || stride == 0 || size - 1 <= kMax / stride);
    empty = empty || size == 0;
    if (fits && size > 0) last += (size - 1) * stride;
  }
  const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
  if (fits && (empty || last < bytes / static_cast<int64_t>(tensor.element_size()))) return;
  throw_error<InvalidInput>(
      "the tensor {} reaches beyond its storage of {} bytes; the file is damaged", name, bytes);
}

namespace {

/// How many of the archive's records of tensors have each size in bytes.
std::map<size_t, int> tensor_sizes(const std::vector<ZipRecord>& records) {
  std::map<size_t, int> sizes;
  for (const ZipRecord& record : records) {
    const std::string name = record_name(record);
    if (name.starts_with("data/") || name.starts_with("constants/")) ++sizes[record.size];
  }
  return sizes;
}

/// TorchScript believes what the file says of a storage's length, whatever its record holds.
class StorageCheck {
 public:
  explicit StorageCheck(const std::vector<ZipRecord>& records) : sizes_(tensor_sizes(records)) {}

  /// Every tensor in a value, however deep.
  void check(const c10::IValue& value, const std::string& name) {
    if (value.isTensor()) return check_tensor(value.toTensor(), name);
    if (value.isList())
      for (const c10::IValue& item : value.toListRef()) check(item, name);
    if (value.isTuple())
      for (const c10::IValue& item : value.toTupleRef().elements()) check(item, name);
    if (value.isGenericDict())
      for (const auto& item : value.toGenericDict()) {
        check(item.key(), name);
        check(item.value(), name);
      }
  }

 private:
  void check_tensor(const at::Tensor& tensor, const std::string& name) {
    if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.has_storage()) return;
    check_bounds(tensor, name);
    const size_t bytes = tensor.storage().nbytes();
    if (bytes == 0 || !seen_.insert(tensor.storage().data()).second) return;
    if (--sizes_[bytes] < 0)
      throw_error<InvalidInput>("no record of the file has the {} bytes of {}; it is damaged",
                                bytes, name);
  }

  std::map<size_t, int> sizes_;
  std::set<const void*> seen_;
};

}  // namespace

torch::jit::Module load_module(std::string_view bytes, const std::string& path) {
  std::vector<ZipRecord> records;
  try {
    records = read_zip_directory(bytes);
    check_one_folder(records);
    check_code(bytes, records, path);
  } catch (const Unsupported&) {
    throw;
  } catch (const std::exception& error) {
    const std::string why = reason(error);
    if (why.starts_with('[')) throw;
    throw_error<InvalidInput>("[{}] is not a TorchScript archive, or a damaged one ({}); {}", path,
                              why, kHowToSave);
  }
  try {
    const torch::jit::Module module =
        torch::jit::load(std::make_shared<BytesReader>(bytes), at::Device(at::kCPU));
    StorageCheck storages(records);
    for (const auto& item : module.named_attributes()) storages.check(item.value, item.name);
    return module;
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[{}] {}", path, error.what());
  } catch (const std::exception& error) {
    throw_error<InvalidInput>("[{}] TorchScript cannot read it: {}; {}", path, reason(error),
                              kHowToSave);
  }
}

}  // namespace tessera

#include "tessera/import/archive.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "tessera/base/error.h"

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

std::string lower_case(std::string text) {
  for (char& letter : text)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

}  // namespace

void check_is_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    throw_error<InvalidInput>("[{}] there is no such file", path);
  if (!std::filesystem::is_regular_file(status))
    throw_error<InvalidInput>("[{}] is not a file; give the file that torch.jit.save wrote", path);
}

void check_archive(const std::string& path) {
  try {
    caffe2::serialize::PyTorchStreamReader reader(path);
    bool has_code = false;
    std::set<std::string> seen;
    for (const std::string& record : reader.getAllRecords()) {
      // TorchScript finds records whatever their case: what it takes for code must be seen here.
      const std::string name = lower_case(record);
      if (!seen.insert(name).second)
        throw_error<InvalidInput>("[{}] holds {} twice; the file is damaged or hostile", path,
                                  name);
      if (!name.starts_with("code/") || !name.ends_with(".py")) continue;
      has_code = true;
      const auto [data, size] = reader.getRecord(record);
      const std::string_view code(static_cast<const char*>(data.get()), size);
      if (code.find("__setstate__") != std::string_view::npos)
        throw_error<Unsupported>(
            "[{}] {} defines __setstate__, code that runs while the file is read (quantized and "
            "packed layers do); save the plain float model",
            path, record);
    }
    if (!has_code)
      throw_error<InvalidInput>("[{}] holds weights but no code (torch.save writes such files); {}",
                                path, kHowToSave);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw_error<InvalidInput>("[{}] is not a TorchScript archive, or a damaged one ({}); {}", path,
                              reason(error), kHowToSave);
  }
}

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
std::map<size_t, int> record_sizes(const std::string& path) {
  caffe2::serialize::PyTorchStreamReader reader(path);
  std::map<size_t, int> sizes;
  for (const std::string& record : reader.getAllRecords())
    if (record.starts_with("data/") || record.starts_with("constants/"))
      ++sizes[std::get<1>(reader.getRecord(record))];
  return sizes;
}

/// TorchScript believes what the file says of a storage's length, whatever its record holds.
class StorageCheck {
 public:
  explicit StorageCheck(const std::string& path) : sizes_(record_sizes(path)) {}

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

torch::jit::Module load_module(const std::string& path) {
  try {
    const torch::jit::Module module = torch::jit::load(path, at::Device(at::kCPU));
    StorageCheck storages(path);
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

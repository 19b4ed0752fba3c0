#include "tessera/import/archive.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/import.h>

#include <filesystem>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr const char* kHowToSave =
    "save the model with torch.jit.script(model).save('model.pt') or torch.jit.trace";

std::string first_line(const std::string& words) { return words.substr(0, words.find('\n')); }

void check_is_readable(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    throw_error<InvalidInput>("[{}] there is no such file", path);
  if (!std::filesystem::is_regular_file(status))
    throw_error<InvalidInput>("[{}] is not a file; give the file that torch.jit.save wrote", path);
}

}  // namespace

void check_archive(const std::string& path) {
  check_is_readable(path);
  try {
    caffe2::serialize::PyTorchStreamReader reader(path);
    bool has_code = false;
    for (const std::string& record : reader.getAllRecords()) {
      if (!record.starts_with("code/") || !record.ends_with(".py")) continue;
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
    throw_error<InvalidInput>("[{}] is no TorchScript archive, or a damaged one ({}); {}", path,
                              first_line(error.what()), kHowToSave);
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

torch::jit::Module load_module(const std::string& path) {
  try {
    const torch::jit::Module module = torch::jit::load(path, at::Device(at::kCPU));
    for (const auto& item : module.named_attributes())
      if (item.value.isTensor()) check_bounds(item.value.toTensor(), item.name);
    return module;
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[{}] {}", path, error.what());
  } catch (const std::exception& error) {
    throw_error<InvalidInput>("[{}] TorchScript cannot read it: {}; {}", path,
                              first_line(error.what()), kHowToSave);
  }
}

}  // namespace tessera

#include <c10/core/GradMode.h>
#include <torch/csrc/jit/serialization/export.h>

#include <exception>

#include "tessera/base/error.h"
#include "tessera/files/atomic_file.h"
#include "tessera/import/archive.h"
#include "tessera/import/import.h"

namespace tessera {
namespace {

std::map<std::string, at::Tensor> state_of(const torch::jit::Module& module) {
  std::map<std::string, at::Tensor> state;
  for (const auto& item : module.named_parameters()) state.emplace(item.name, item.value);
  for (const auto& item : module.named_buffers()) state.emplace(item.name, item.value);
  return state;
}

void copy_weights(const std::string& file, const Graph& graph,
                  const std::vector<at::Tensor>& values, std::map<std::string, at::Tensor>& state) {
  for (size_t id = 0; id < graph.parameters().size(); ++id) {
    const Parameter& parameter = graph.parameters()[id];
    if (!parameter.persistent) continue;
    const auto found = state.find(parameter.name);
    if (found == state.end() || found->second.sizes() != at::IntArrayRef(parameter.shape))
      throw_error<InvalidInput>("[{}] has no weight {} of shape {} any more; was it replaced?",
                                file, parameter.name, to_string(parameter.shape));
    found->second.copy_(values[id]);
  }
}

// LibTorch hears of no failed write: it would end the archive in a destructor, which fails again
// and so ends the process. What follows the failure is dropped instead.
void write_module(const torch::jit::Module& module, OutputFile& file) {
  std::exception_ptr failure;
  torch::jit::ExportModule(module, [&](const void* data, size_t bytes) {
    try {
      if (!failure) file.append(data, bytes);
    } catch (...) {
      failure = std::current_exception();
    }
    return bytes;
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void save_torchscript(const std::string& original, const std::string& path, const Graph& graph,
                      const std::map<std::string, int64_t>& counters,
                      const std::vector<at::Tensor>& values, int64_t steps) {
  check_archive(original);
  torch::jit::Module module = load_module(original);
  const c10::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> state = state_of(module);
  copy_weights(original, graph, values, state);
  for (const auto& [name, per_step] : counters)
    if (const auto found = state.find(name); found != state.end())
      found->second.add_(per_step * steps);
  try {
    write_file_atomically(path, [&](OutputFile& file) { write_module(module, file); });
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string words = error.what();
    throw_error<InvalidInput>("[{}] cannot be written: {}", path,
                              words.substr(0, words.find('\n')));
  }
}

}  // namespace tessera

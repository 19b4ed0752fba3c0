#include <c10/core/GradMode.h>
#include <torch/csrc/jit/serialization/export.h>

#include <exception>

#include "tessera/base/error.h"
#include "tessera/files/atomic_file.h"
#include "tessera/import/archive.h"
#include "tessera/import/import.h"
#include "tessera/import/model_file.h"

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

/// In the child: the file with other weights.
torch::jit::Module with_weights(const ModelFile& original, const Graph& graph,
                                const std::map<std::string, int64_t>& counters,
                                const std::vector<at::Tensor>& values, int64_t steps) {
  torch::jit::Module module = load_module(original.bytes(), original.path());
  std::map<std::string, at::Tensor> state = state_of(module);
  copy_weights(original.path(), graph, values, state);
  for (const auto& [name, per_step] : counters)
    if (const auto found = state.find(name); found != state.end())
      found->second.add_(per_step * steps);
  return module;
}

/// Reads to the end, so that the child's own word is heard; returns why the file was not written.
std::exception_ptr append_all(ChildAnswer& answer, OutputFile& file) {
  std::exception_ptr failure;
  std::vector<char> block(1 << 20);
  while (const size_t bytes = answer.read_some(block.data(), block.size())) {
    try {
      if (!failure) file.append(block.data(), bytes);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  return failure;
}

}  // namespace

void save_torchscript(const std::string& original, const std::string& path, const Graph& graph,
                      const std::map<std::string, int64_t>& counters,
                      const std::vector<at::Tensor>& values, int64_t steps,
                      WithoutFilter without_filter) {
  const ModelFile model(original);
  const auto work = [&](const SendBytes& send) {
    const c10::NoGradGuard no_grad;
    torch::jit::ExportModule(with_weights(model, graph, counters, values, steps),
                             [&](const void* data, size_t bytes) {
                               send(data, bytes);
                               return bytes;
                             });
  };
  write_file_atomically(path, [&](OutputFile& file) {
    std::exception_ptr not_written;
    ask_closed_child(original, model.limits(), without_filter, work,
                     [&](ChildAnswer& answer) { not_written = append_all(answer, file); });
    if (not_written) std::rethrow_exception(not_written);
  });
}

}  // namespace tessera

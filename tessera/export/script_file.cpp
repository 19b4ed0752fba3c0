#include "tessera/export/script_file.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/export.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <map>
#include <memory>

#include "tessera/base/error.h"
#include "tessera/export/script_source.h"
#include "tessera/files/atomic_file.h"
#include "tessera/graph/transform.h"

namespace tessera {
namespace {

/// Modules by their dotted names; the network itself has the empty one.
class ModuleTree {
 public:
  ModuleTree() { modules_.emplace("", made("Network")); }

  torch::jit::Module& root() { return modules_.at(""); }

  /// Makes it, and those around it, where it is not there.
  torch::jit::Module& at(const std::string& name) {
    if (const auto found = modules_.find(name); found != modules_.end()) return found->second;
    const auto [parent, own_name] = split_last(name);
    std::string class_name = "Network_" + name;
    std::replace_if(
        class_name.begin(), class_name.end(),
        [](char letter) { return !std::isalnum(static_cast<unsigned char>(letter)); }, '_');
    const torch::jit::Module module = made(class_name);
    at(parent).register_module(own_name, module);
    return modules_.emplace(name, module).first->second;
  }

  void add(const Parameter& parameter, const at::Tensor& value) {
    const auto [module, own_name] = split_last(parameter.name);
    // A file holds whole storages, so that a view would bring along what is not its own.
    at::Tensor own = value.detach().clone();
    const bool is_buffer = parameter.role == ParameterRole::kBuffer;
    own.set_requires_grad(parameter.role == ParameterRole::kTrainable);
    at(module).register_parameter(own_name, own, is_buffer);
  }

 private:
  /// "enc1.conv1.weight" → "enc1.conv1" and "weight".
  static std::pair<std::string, std::string> split_last(const std::string& name) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) return {"", name};
    return {name.substr(0, dot), name.substr(dot + 1)};
  }

  torch::jit::Module made(const std::string& class_name) const {
    torch::jit::Module module("__torch__.tessera." + class_name, unit_, /*shouldMangle=*/true);
    module.register_attribute("training", c10::BoolType::get(), true);
    return module;
  }

  std::shared_ptr<torch::jit::CompilationUnit> unit_ =
      std::make_shared<torch::jit::CompilationUnit>();
  std::map<std::string, torch::jit::Module> modules_;
};

/// LibTorch's writer would end the process where its output throws, so the reason waits.
void append_module(const torch::jit::Module& module, OutputFile& file) {
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

Graph without_losses(const Graph& graph) { return prune(graph, Losses::kDrop); }

}  // namespace

void export_torchscript(const std::string& path, const Graph& graph,
                        const std::vector<at::Tensor>& values) {
  const Graph network = without_losses(graph);
  const ScriptSource source = script_source(network);
  ModuleTree tree;
  for (size_t id = 0; id < network.parameters().size(); ++id)
    tree.add(network.parameters()[id], values[id]);
  for (const std::string& module : source.modules) tree.at(module);
  tree.root().define(source.forward);
  write_file_atomically(path, [&](OutputFile& file) { append_module(tree.root(), file); });
}

void check_exportable(const Graph& graph) { script_source(without_losses(graph)); }

}  // namespace tessera

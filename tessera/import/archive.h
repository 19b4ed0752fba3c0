#pragma once
// What can be checked in a model file before TorchScript reads it, and the reading itself.

#include <torch/csrc/jit/api/module.h>

#include <string>

namespace tessera {

/// Throws InvalidInput unless there is such a file.
void check_is_file(const std::string& path);

/// Throws InvalidInput unless the file is an archive that torch.jit.save wrote, and Unsupported
/// where loading it would run code of its own (__setstate__).
void check_archive(const std::string& path);

/// The module, on the CPU, with all its tensors inside their storages. check_archive comes first.
/// Throws InvalidInput where TorchScript cannot read it.
torch::jit::Module load_module(const std::string& path);

/// Throws InvalidInput unless every element of the tensor lies in its storage: TorchScript takes
/// sizes and strides from the file as they come.
void check_bounds(const at::Tensor& tensor, const std::string& name);

}  // namespace tessera

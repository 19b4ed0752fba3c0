#pragma once
// A model file: what can be checked of it before TorchScript reads it, and the reading itself. All
// of this runs in a closed child (closed_child.h): the file's code may run when LibTorch loads it.

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <string_view>

namespace tessera {

/// The module in the bytes of a file, on the CPU, with all its tensors inside their storages.
/// Throws InvalidInput, naming `path`, unless the bytes are one archive that torch.jit.save wrote
/// and TorchScript can read, and Unsupported where loading it would run code of its own
/// (__setstate__).
torch::jit::Module load_module(std::string_view bytes, const std::string& path);

/// Throws InvalidInput unless every element of the tensor lies in its storage: TorchScript takes
/// sizes and strides from the file as they come.
void check_bounds(const at::Tensor& tensor, const std::string& name);

}  // namespace tessera

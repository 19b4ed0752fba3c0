#pragma once
// Errors that mean that the machine, or a limit on this process, has no more to give: memory or
// threads. They come from the standard library and from LibTorch, which has no type for them.

#include <exception>

namespace tessera {

bool is_shortage(const std::exception& error);

}  // namespace tessera

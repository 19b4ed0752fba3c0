#include "tessera/base/shortage.h"

#include <cerrno>
#include <new>
#include <string_view>
#include <system_error>

namespace tessera {

bool is_shortage(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (const auto* failed = dynamic_cast<const std::system_error*>(&error)) {
    const int code = failed->code().value();  // EAGAIN: no more threads
    return code == EAGAIN || code == ENOMEM;
  }
  const std::string_view words = error.what();
  return words.find("DefaultCPUAllocator: ") != std::string_view::npos &&
         words.find("memory") != std::string_view::npos;
}

}  // namespace tessera

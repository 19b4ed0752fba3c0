#include "tessera/base/cpu.h"

#include <cstdlib>

namespace tessera {

bool cpu_has_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") && std::getenv("TESSERA_CPU_WITHOUT_BF16") == nullptr;
#else
  return false;
#endif
}

}  // namespace tessera

#pragma once
// What this machine's CPU can do.

namespace tessera {

/// Whether it multiplies numbers of type bf16 (AVX512-BF16; CPUs with AMX have that, too). Not
/// where the variable TESSERA_CPU_WITHOUT_BF16 is set: so one sees what others see.
bool cpu_has_bf16();

}  // namespace tessera

#pragma once
// What this machine's CPU is and can do.

#include <string>

namespace tessera {

/// "AMD EPYC 9654 96-Core Processor"; "unknown" where the system does not say.
std::string cpu_model();

/// Without those that a batch system or taskset withholds; of the process, since a worker's thread
/// may be bound to fewer.
int usable_cores();

/// Whether it multiplies numbers of type bf16 (AVX512-BF16; CPUs with AMX have that, too). Not
/// where the variable TESSERA_CPU_WITHOUT_BF16 is set: so one sees what others see.
bool cpu_has_bf16();

}  // namespace tessera

#pragma once
// LibTorch computes functions such as sqrt by MKL where it is built with it. MKL 2024.2 (LibTorch
// 2.10 and 2.11) chooses the code of each function at its first call, and a thread that comes while
// another is choosing may run code of low accuracy, once: ranks that update the same weights then
// differ in the 13th digit. See pytorch/pytorch, issue 188792.

namespace tessera {

/// Calls each of these functions once in this process, while nobody else does; every executor asks
/// for it. Later calls do nothing.
void settle_vector_math();

}  // namespace tessera

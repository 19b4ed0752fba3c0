#pragma once
// Runs whose kernels do not read and write narrow numbers, on copies in float32:
//
//   Run conv x -> y        Copy x -> x in float32
//                          Run conv x in float32 -> y in float32
//                          Copy y in float32 -> y
//
// So every operator works on values of two bytes. The copies are scratch, there while the kernel
// runs. A kernel gets numbers of one type: where an operand is float32 anyway, such as a target,
// the others are widened.

#include "tessera/lower/program.h"

namespace tessera {

/// Of a program whose values are narrow, for kernels of this device. Before insert_allocations().
void widen(const Graph& graph, at::DeviceType device, Program* program);

}  // namespace tessera

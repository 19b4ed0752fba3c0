#pragma once
// A 64-bit checksum of bytes and tensors: finds damaged files, and ranks whose parameters drifted
// apart. Equal bits give equal sums on every machine; a change within one 8-byte word always
// changes the sum, any other with a probability of 1 - 2^-64. It does not protect against forgery.
//
// Example:
//   if (checksum(store.values()) != sum_of_rank_0) ...

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

uint64_t checksum(std::string_view bytes, uint64_t seed = 0);

/// Covers the element type, the shape and the elements in row-major order; strides and device make
/// no difference. 0.0 and -0.0 differ: it is a sum of bits.
uint64_t checksum(const at::Tensor& tensor);

/// Covers all tensors, in this order; undefined ones count as such.
uint64_t checksum(const std::vector<at::Tensor>& tensors);

/// 16 hexadecimal digits: JSON numbers lose the last bits of such integers in many readers.
std::string checksum_text(uint64_t sum);

}  // namespace tessera

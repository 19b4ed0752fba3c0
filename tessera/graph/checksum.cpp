#include "tessera/graph/checksum.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "tessera/geometry/box.h"

namespace tessera {
namespace {

// Odd numbers without pattern: multiplying by them, modulo 2^64, can be undone.
constexpr uint64_t kFirst = 0xd1342543de82ef95ULL;
constexpr uint64_t kSecond = 0xa0761d6478bd642fULL;
constexpr size_t kLanes = 4;  // independent chains, so that multiplications overlap
constexpr size_t kBlock = kLanes * sizeof(uint64_t);

// Each step can be undone for a known word, and for a known lane: so no change of one word is lost.
uint64_t absorb(uint64_t lane, uint64_t word) {
  return std::rotl((lane ^ word) * kFirst, 29) * kSecond;
}

uint64_t finish(uint64_t sum) {
  sum = (sum ^ (sum >> 32)) * kFirst;
  sum = (sum ^ (sum >> 29)) * kSecond;
  return sum ^ (sum >> 32);
}

using Lanes = std::array<uint64_t, kLanes>;

void absorb_block(Lanes& lanes, const char* block) {
  std::array<uint64_t, kLanes> words;
  std::memcpy(words.data(), block, kBlock);
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = absorb(lanes[i], words[i]);
}

}  // namespace

uint64_t checksum(std::string_view bytes, uint64_t seed) {
  Lanes lanes;
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = finish(seed + (i + 1) * kSecond);
  size_t offset = 0;
  for (; bytes.size() - offset >= kBlock; offset += kBlock)
    absorb_block(lanes, bytes.data() + offset);
  if (offset < bytes.size()) {
    std::array<char, kBlock> rest{};
    std::memcpy(rest.data(), bytes.data() + offset, bytes.size() - offset);
    absorb_block(lanes, rest.data());
  }
  uint64_t sum = finish(seed ^ bytes.size());  // the size tells zeros at the end from the padding
  for (uint64_t lane : lanes) sum = finish(sum ^ lane);
  return sum;
}

uint64_t checksum(const at::Tensor& tensor) {
  if (!tensor.defined()) return checksum(std::string_view("undefined"));
  const at::Tensor dense = tensor.detach().cpu().contiguous();
  const std::string kind =
      fmt::format("{} {}", c10::toString(dense.scalar_type()),
                  to_string(Shape(dense.sizes().begin(), dense.sizes().end())));
  const char* data = dense.nbytes() == 0 ? "" : static_cast<const char*>(dense.data_ptr());
  return checksum(std::string_view(data, dense.nbytes()), checksum(kind));
}

uint64_t checksum(const std::vector<at::Tensor>& tensors) {
  uint64_t sum = checksum(std::string_view("tensors"));
  for (const at::Tensor& tensor : tensors) sum = finish(absorb(sum, checksum(tensor)));
  return sum;
}

std::string checksum_text(uint64_t sum) { return fmt::format("{:016x}", sum); }

}  // namespace tessera

#include "tests/attack/writers/amount.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tessera::attack {
namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

void for_each_case(int by_default, const std::function<void(uint64_t seed)>& attack) {
  const uint64_t count = number_from("TESSERA_ATTACK_CASES", static_cast<uint64_t>(by_default));
  const uint64_t first = number_from("TESSERA_ATTACK_SEED", 12);
  uint64_t done = 0;
  for (; done < count && !testing::Test::HasFailure(); ++done) {
    SCOPED_TRACE("repeat alone: TESSERA_ATTACK_SEED=" + std::to_string(first + done) +
                 " TESSERA_ATTACK_CASES=1");
    attack(first + done);
  }
  std::printf("%llu cases, seeds from %llu\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(first));
}

}  // namespace tessera::attack

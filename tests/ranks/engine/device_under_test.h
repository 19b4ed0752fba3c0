#pragma once
// The device on which the batteries run their placements: the CPU, or what the environment says in
// TESSERA_TEST_DEVICE ("cuda"), so that the same cases test another device on a machine that has
// one. Where it does, and the tests ask for no layout, half of the cases take either.

#include <cstdlib>
#include <string>

#include "tessera/runtime/device.h"

namespace tessera {

inline DeviceChoice device_under_test() {
  const char* name = std::getenv("TESSERA_TEST_DEVICE");
  DeviceChoice choice;
  if (name != nullptr && std::string(name) == "cuda") choice.type = at::kCUDA;
  choice.deterministic = true;
  return choice;
}

/// The same, with images in the order that the number of the case says.
inline DeviceChoice device_under_test(uint64_t number) {
  DeviceChoice choice = device_under_test();
  if (choice.type != at::kCPU)
    choice.layout = number % 2 == 0 ? ImageLayout::kContiguous : ImageLayout::kChannelsLast;
  return choice;
}

}  // namespace tessera

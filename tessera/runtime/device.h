#pragma once
// Where a rank computes. A device has memory and streams; instructions of one stream run in order,
// and the executor waits for a stream only where its results leave the device (a strip that is
// sent). The CPU's streams are always up to date.

#include <ATen/ATen.h>

#include "tessera/lower/program.h"

namespace tessera {

class Device {
 public:
  virtual ~Device() = default;
  virtual at::Tensor empty(const Shape& shape, at::ScalarType type) = 0;
  /// Returns when all that was put on the stream is done.
  virtual void synchronise(Stream stream) = 0;
};

class CpuDevice final : public Device {
 public:
  at::Tensor empty(const Shape& shape, at::ScalarType type) override {
    return at::empty(shape, type);
  }
  void synchronise(Stream) override {}
};

}  // namespace tessera

#pragma once
// Walks a program without running it and predicts what the executor will count: the peak of the
// value bytes, the messages and the bytes sent. Exact by construction of the program, and tested to
// the byte.

#include <ATen/ATen.h>

#include <cstdint>

#include "tessera/lower/program.h"

namespace tessera {

struct RankForecast {
  int64_t peak_value_bytes = 0;
  int64_t parameter_bytes = 0;  // values, buffers and gradients
  int64_t messages = 0;
  int64_t bytes_sent = 0;
};

RankForecast simulate(const Program& program, const Graph& graph, at::ScalarType real);

}  // namespace tessera

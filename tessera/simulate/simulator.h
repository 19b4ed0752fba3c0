#pragma once
// Walks a program without running it and predicts what the executor will count: the peak of the
// value bytes, the messages and the bytes sent. Exact by construction of the program, and tested to
// the byte.

#include <ATen/ATen.h>

#include <cstdint>

#include "tessera/lower/program.h"

namespace tessera {

struct RankForecast {
  int64_t peak_value_bytes = 0;  // the most that lives at once of all that comes and goes
  int64_t arena_bytes = 0;       // the memory that it lies in; set by forecast() alone
  int64_t reduction_bytes = 0;   // of those, the most that reductions receive at once
  int64_t scratch_bytes = 0;     // of those, the most that kernels have for themselves at once
  int64_t parameter_bytes = 0;   // what lives as long as the parameters
  int64_t messages = 0;
  int64_t bytes_sent = 0;
};

RankForecast simulate(const Program& program, at::ScalarType real);

/// The forecast of another rank of the same class (lower/rank_classes.h): in a reduction its place
/// among the members is another.
RankForecast simulate_as(int rank, const Program& program, const RankForecast& forecast,
                         at::ScalarType real);

}  // namespace tessera

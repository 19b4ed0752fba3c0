#include "tessera/simulate/simulator.h"

#include <algorithm>

#include "tessera/lower/posts.h"

namespace tessera {
namespace {

/// Adds what an instruction sends, or takes it off with `sign` -1.
void count_sends(const Instruction& instruction, const Program& program, int rank,
                 at::ScalarType real, int sign, RankForecast* forecast) {
  for (const Posts& round : communication_of(instruction, program, rank, real).rounds)
    for (const Post& post : round.sends) {
      forecast->messages += sign;
      forecast->bytes_sent += sign * post.bytes;
    }
}

bool is_reduction(const Instruction& instruction) {
  return std::holds_alternative<StartReduce>(instruction) ||
         std::holds_alternative<AdvanceReduce>(instruction) ||
         std::holds_alternative<FinishReduce>(instruction);
}

}  // namespace

RankForecast simulate(const Program& program, at::ScalarType real) {
  RankForecast forecast;
  int64_t live = 0, reducing = 0, scratch = 0;
  const auto add = [&](BufferId id, int64_t sign) {
    const Buffer& buffer = program.buffers[id];
    const int64_t bytes = sign * buffer_bytes(buffer, real);
    live += bytes;
    if (buffer.kind == BufferKind::kReduction) reducing += bytes;
    if (buffer.kind == BufferKind::kScratch) scratch += bytes;
    forecast.peak_value_bytes = std::max(forecast.peak_value_bytes, live);
    forecast.reduction_bytes = std::max(forecast.reduction_bytes, reducing);
    forecast.scratch_bytes = std::max(forecast.scratch_bytes, scratch);
  };
  for (const Buffer& buffer : program.buffers)
    if (is_permanent(buffer.kind)) forecast.parameter_bytes += buffer_bytes(buffer, real);
  for (const Instruction& instruction : program.instructions) {
    if (const auto* alloc = std::get_if<Alloc>(&instruction)) add(alloc->buffer, 1);
    if (const auto* free = std::get_if<Free>(&instruction)) add(free->buffer, -1);
    count_sends(instruction, program, program.rank, real, 1, &forecast);
  }
  return forecast;
}

RankForecast simulate_as(int rank, const Program& program, const RankForecast& forecast,
                         at::ScalarType real) {
  RankForecast other = forecast;
  for (const Instruction& instruction : program.instructions) {
    if (rank == program.rank || !is_reduction(instruction)) continue;
    count_sends(instruction, program, program.rank, real, -1, &other);
    count_sends(instruction, program, rank, real, 1, &other);
  }
  return other;
}

}  // namespace tessera

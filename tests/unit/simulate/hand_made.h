#pragma once
// Programs of a few instructions, written down by hand: the timeline needs no lowering.

#include <utility>
#include <vector>

#include "tessera/lower/program.h"
#include "tessera/ops/pointwise/relu.h"

namespace tessera::hand_made {

constexpr int kStrip = 0;   // a buffer of 250 floats: 1000 bytes
constexpr int kSum = 1;     // 3000 floats
constexpr int kNumber = 2;  // one double

inline Buffer buffer(const Box& box, ElementType element = ElementType::kReal) {
  Buffer made;
  made.box = box;
  made.element = element;
  return made;
}

inline Program program(int rank, int num_ranks, std::vector<Instruction> instructions) {
  Program made;
  made.rank = rank;
  made.num_ranks = num_ranks;
  made.buffers = {buffer({{0, 250}}), buffer({{0, 3000}}), buffer({{0, 1}}, ElementType::kDouble)};
  made.instructions = std::move(instructions);
  return made;
}

inline Enter enter(TaskKind kind, int micro_batch, int stage = 0) {
  return {Enter::Part::kTask, {kind, stage, micro_batch}, stage};
}
inline Enter forward(int micro_batch, int stage = 0) {
  return enter(TaskKind::kForward, micro_batch, stage);
}
inline Enter backward(int micro_batch, int stage = 0) {
  return enter(TaskKind::kBackward, micro_batch, stage);
}
inline Enter weight(int micro_batch, int stage = 0) {
  return enter(TaskKind::kWeight, micro_batch, stage);
}
inline Enter finish_step() { return {Enter::Part::kFinish, {}, 0}; }

inline StartTransfer send(int channel, int peer) { return {channel, {{peer, kStrip, {}}}, {}}; }
inline StartTransfer receive(int channel, int peer) { return {channel, {}, {{peer, kStrip, {}}}}; }
inline FinishTransfer finish(int channel) { return {channel, {kStrip}}; }

/// Its node 0 counts 10 operations on each of its output's 10 rows.
inline Graph graph_of_one_kernel() {
  Graph graph;
  relu(graph, graph.add_input("image", ValueType::image({1, 1, 10, 10})), "relu1");
  return graph;
}
inline Run kernel(Phase phase, int64_t rows) {
  return {0, phase, 0, Box{{0, 1}, {0, 1}, {0, rows}, {0, 10}}, {}};
}

/// Two stages, three micro-batches, 1F1B, with sends that are finished at the end:
///   0 | F0 F1  .  . B0 B0 F2 B1 B1  . B2 B2
///   1 |  . F0 B0 B0 F1 B1 B1 F2 B2 B2  .  .
/// Channel m carries the output of micro-batch m, 10 + m its gradient.
inline std::vector<Program> two_stages() {
  std::vector<Instruction> first, second;
  const auto append = [](std::vector<Instruction>* to, std::vector<Instruction> more) {
    to->insert(to->end(), more.begin(), more.end());
  };
  const auto first_forward = [&](int m) { append(&first, {forward(m), send(m, 1)}); };
  const auto first_backward = [&](int m) {
    append(&first, {backward(m), receive(10 + m, 1), finish(10 + m)});
  };
  first_forward(0);
  first_forward(1);
  first_backward(0);
  first_forward(2);
  first_backward(1);
  first_backward(2);
  append(&first, {finish_step(), finish(0), finish(1), finish(2)});
  for (int m = 0; m < 3; ++m)
    append(&second, {forward(m, 1), receive(m, 0), finish(m), backward(m, 1), send(10 + m, 0)});
  append(&second, {finish_step(), finish(10), finish(11), finish(12)});
  return {program(0, 2, first), program(1, 2, second)};
}

}  // namespace tessera::hand_made

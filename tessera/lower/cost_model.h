#pragma once
// What the parts of a step cost in time. One model serves the order of tasks (schedule.h), the
// timeline and the balance of stages.
//
// clang-format off
//   UnitCosts  a task costs 1, a backward that includes its weight gradients 2; kernels and messages
//              cost nothing. An even pipeline then looks as papers draw its schedule.
//   Roofline   a kernel takes as long as its operations or its traffic with memory, whichever is
//              longer, a message latency + bytes / bandwidth; a task costs nothing besides. This
//              shows how uneven stages are, in seconds of an ideal device.
// clang-format on

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>
#include <memory>

#include "tessera/graph/graph.h"
#include "tessera/lower/program.h"
#include "tessera/plan/schedule_costs.h"

namespace tessera {

enum class TimeUnit { kTasks, kSeconds };

class CostModel {
 public:
  virtual ~CostModel() = default;

  /// What real numbers are: the bytes of operands and messages follow from it.
  at::ScalarType real() const { return real_; }
  virtual TimeUnit unit() const = 0;

  /// A task, whatever runs in it. kBackward is that of the input gradients alone.
  virtual double task(TaskKind kind) const = 0;
  /// One phase of a node on a box of its output. Merges touch no pixels and cost nothing.
  virtual double kernel(const Node& node, Phase phase, const Box& out) const = 0;
  virtual double message(int64_t bytes) const = 0;

 protected:
  explicit CostModel(at::ScalarType real) : real_(real) {}

 private:
  at::ScalarType real_;
};

class UnitCosts final : public CostModel {
 public:
  explicit UnitCosts(at::ScalarType real = at::kFloat) : CostModel(real) {}
  TimeUnit unit() const override { return TimeUnit::kTasks; }
  double task(TaskKind) const override { return 1; }
  double kernel(const Node&, Phase, const Box&) const override { return 0; }
  double message(int64_t) const override { return 0; }
};

/// Of one worker of an ideal device. Sizes are round numbers, the proportion is about that of a
/// core of a server, which does 2.3 FLOPs in a convolution for each byte that it moves in a norm.
/// Messages take no time unless one says so.
struct RooflineRates {
  double flops_per_second = 1e10;
  double memory_bytes_per_second = 5e9;
  double message_latency_seconds = 0;
  double message_bytes_per_second = std::numeric_limits<double>::infinity();
};

class Roofline final : public CostModel {
 public:
  explicit Roofline(const RooflineRates& rates = {}, at::ScalarType real = at::kFloat)
      : CostModel(real), rates_(rates) {}
  TimeUnit unit() const override { return TimeUnit::kSeconds; }
  double task(TaskKind) const override { return 0; }
  double kernel(const Node& node, Phase phase, const Box& out) const override;
  double message(int64_t bytes) const override;

 private:
  double time(double flops, double elements_moved) const;

  RooflineRates rates_;
};

/// kFlops: the roofline, with its usual rates.
std::unique_ptr<CostModel> make_cost_model(ScheduleCosts costs, at::ScalarType real = at::kFloat);

}  // namespace tessera

#include "tessera/train/serial_check.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"
#include "tessera/lower/multigrid.h"

namespace tessera {

SerialCheck::SerialCheck(const TrainingJob& job, ParameterStore* parameters, Transport* transport)
    : job_(job),
      parameters_(*parameters),
      transport_(*transport),
      serial_(job.serial_step->graph(), job.serial_step->program(transport->rank()), parameters,
              transport, ExecutorOptions{job.real}) {}

void SerialCheck::run(const StepContext& context) {
  std::vector<std::pair<at::Tensor, at::Tensor>> running;  // and what they were before
  for (size_t id = 0; id < parameters_.values().size(); ++id)
    if (const at::Tensor& value = parameters_.values()[id];
        value.defined() && job_.graph.parameters()[id].role == ParameterRole::kBuffer)
      running.emplace_back(value, value.clone());
  serial_.run(context);
  loss_ = serial_.loss();
  squares_[0] = squares_[1] = 0;
  for (auto& [value, before] : running) value.copy_(before);
  gradients_.assign(parameters_.gradients().size(), at::Tensor());
  for (size_t id = 0; id < gradients_.size(); ++id)
    if (const at::Tensor& gradient = parameters_.gradients()[id];
        gradient.defined() && job_.serial_step->holders()[id].front() == transport_.rank())
      gradients_[id] = gradient.clone();
}

void SerialCheck::compare_gradients() {
  for (size_t id = 0; id < gradients_.size(); ++id) {
    if (!gradients_[id].defined()) continue;
    const at::Tensor serial = gradients_[id].to(at::kDouble);
    const at::Tensor own = parameters_.gradients()[id].to(at::kDouble);
    squares_[0] += (own - serial).square_().sum().item<double>();
    squares_[1] += serial.square().sum().item<double>();
  }
  AllReduce sum(transport_, everyone(transport_.size()), squares_, 2, SumType::kFloat64);
  sum.finish();
}

SerialDifference SerialCheck::difference(double loss) const {
  return {std::abs(loss - loss_) / std::abs(loss_), std::sqrt(squares_[0] / squares_[1])};
}

std::shared_ptr<const Lowering> lower_serial_step(const TrainingJob& job) {
  if (job.config.check_serial == 0) return nullptr;
  if (!job.plan.multigrid)
    throw_error<InvalidInput>(
        "[--check-serial] layers follow each other already; it goes with --multigrid");
  if (job.config.accumulation != 1)
    throw_error<InvalidInput>(
        "[--check-serial] compares steps of one batch, and --accumulation is {}; leave one of them "
        "out",
        job.config.accumulation);
  LowerOptions options;
  options.real = job.real;
  options.device = job.device;
  auto lowering = std::make_shared<const Lowering>(job.graph, without_multigrid(job.plan), options);
  const auto &own = lowering->step().buckets, &others = job.micro_steps[0]->step().buckets;
  TESSERA_CHECK(own.size() == others.size(), "{} buckets and {}", own.size(), others.size());
  for (size_t b = 0; b < own.size(); ++b)
    TESSERA_CHECK(own[b].parameters == others[b].parameters && own[b].holders == others[b].holders,
                  "bucket {} holds other parameters in a serial step", b);
  return lowering;
}

}  // namespace tessera

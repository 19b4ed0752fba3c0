#include "tests/unit/checkpoint/example_state.h"

#include <bit>
#include <limits>

#include "tessera/base/random.h"
#include "tessera/graph/checksum.h"

namespace tessera {

TrainingState example_state(int64_t step, int64_t elements) {
  const RandomKey key = RandomKey(7).with(static_cast<uint64_t>(step));
  TrainingState state;
  at::Tensor weight = at::empty({elements}, at::kFloat);
  for (int64_t i = 0; i < elements; ++i)
    weight.data_ptr<float>()[i] = static_cast<float>(key.uniform(i));
  state.tensors = {{"optimiser.step", at::scalar_tensor(step, at::kLong)},
                   {"model.conv.weight", weight},
                   {"model.norm.mean", at::full({2}, key.uniform(1u << 30), at::kDouble)}};
  state.step = step;
  state.epoch = step / 10;
  state.position_in_epoch = step % 10;
  state.seed = std::numeric_limits<uint64_t>::max() - static_cast<uint64_t>(step);
  state.best_metric = 1.0 / (3.0 + static_cast<double>(step));
  state.metadata = {{"model", "unet2d:base=16"}, {"unité", "größe\n\"quoted\""}};
  return state;
}

bool same_state(const TrainingState& a, const TrainingState& b) {
  const auto sums = [](const TrainingState& state) {
    std::map<std::string, uint64_t> sums;
    for (const auto& [name, tensor] : state.tensors) sums[name] = checksum(tensor);
    return sums;
  };
  return sums(a) == sums(b) && a.step == b.step && a.epoch == b.epoch &&
         a.position_in_epoch == b.position_in_epoch && a.seed == b.seed &&
         std::bit_cast<uint64_t>(a.best_metric) == std::bit_cast<uint64_t>(b.best_metric) &&
         a.metadata == b.metadata;
}

}  // namespace tessera

#pragma once
// Keeps an exponential moving average of the weights beside any optimiser: after each step
//
//   average = decay average + (1 - decay) p        the first step: average = p
//
// as torch.optim.swa_utils.AveragedModel does with an EMA as its avg_fn. The average is one more
// tensor of the optimiser's state, "ema.conv1.weight", so that checkpoints hold it and a resumed
// run continues with the same bits.
//
// Example:
//   std::unique_ptr<Optimiser> optimiser = averaged(adamw({}), 0.999);
//   {
//     const WithAverages averages(*optimiser, store.values());   // the averages, in their place
//     validate(store.values());
//   }                                                            // the weights again

#include <memory>
#include <vector>

#include "tessera/optim/optimiser.h"

namespace tessera {

/// Throws InvalidInput unless `decay` is in [0, 1).
std::unique_ptr<Optimiser> averaged(std::unique_ptr<Optimiser> optimiser, double decay);

/// While it lives, the parameters hold their averages, and the optimiser's state the weights; bits
/// are moved, not computed. Nothing changes for an optimiser without averages, or before its first
/// step.
class WithAverages {
 public:
  WithAverages(Optimiser& optimiser, std::vector<at::Tensor>& parameters)
      : optimiser_(optimiser), parameters_(parameters) {
    exchange();
  }
  ~WithAverages() { exchange(); }
  WithAverages(const WithAverages&) = delete;
  WithAverages& operator=(const WithAverages&) = delete;

 private:
  void exchange();

  Optimiser& optimiser_;
  std::vector<at::Tensor>& parameters_;
};

}  // namespace tessera

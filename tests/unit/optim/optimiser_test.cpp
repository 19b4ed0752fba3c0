// The optimisers against PyTorch's own, step by step and with a learning rate that changes.

#include <gtest/gtest.h>
#include <torch/optim.h>

#include <limits>

#include "tessera/optim/optimiser.h"
#include "tests/unit/refusal.h"
#include "tests/unit/train/small_problem.h"

namespace tessera::optimiser_test {
namespace {

double rate_at(int step) { return 0.1 / (1 + step); }

/// Ten steps of both, from the same start; the gradients of each depend on where it is.
template <class TorchOptimiser, class TorchOptions>
void expect_like_torch(Optimiser& ours, TorchOptions torch_options) {
  const Graph graph = small_graph();
  std::vector<at::Tensor> parameters = small_parameters(graph, at::kDouble);
  std::vector<at::Tensor> theirs = small_parameters(graph, at::kDouble);
  const at::Tensor buffer = parameters[1].clone();
  for (at::Tensor& parameter : theirs) parameter.requires_grad_(true);
  TorchOptimiser optimiser({theirs[0], theirs[2]}, torch_options);
  for (int step = 0; step < 10; ++step) {
    ours.set_learning_rate(rate_at(step));
    ours.step(parameters, small_gradients(graph, parameters, step));

    static_cast<TorchOptions&>(optimiser.param_groups()[0].options()).lr(rate_at(step));
    {
      c10::NoGradGuard no_autograd;
      const std::vector<at::Tensor> gradients = small_gradients(graph, theirs, step);
      for (int id : {0, 2}) theirs[id].mutable_grad() = gradients[id];
    }
    optimiser.step();
    for (int id : {0, 2})
      EXPECT_LE((parameters[id] - theirs[id].detach()).abs().max().item<double>(), 1e-14)
          << "step " << step << " parameter " << id;
  }
  EXPECT_TRUE(parameters[1].equal(buffer)) << "a buffer was touched";
}

TEST(Sgd, LikeTorch) {
  for (double momentum : {0.0, 0.9})
    for (double weight_decay : {0.0, 0.05})
      for (bool nesterov : {false, true}) {
        if (nesterov && momentum == 0) continue;
        SCOPED_TRACE(
            fmt::format("momentum {} decay {} nesterov {}", momentum, weight_decay, nesterov));
        const auto ours = sgd({.learning_rate = 1,
                               .momentum = momentum,
                               .weight_decay = weight_decay,
                               .nesterov = nesterov});
        EXPECT_EQ(ours->state_copies(), momentum != 0 ? 1 : 0);
        expect_like_torch<torch::optim::SGD>(*ours, torch::optim::SGDOptions(1)
                                                        .momentum(momentum)
                                                        .weight_decay(weight_decay)
                                                        .nesterov(nesterov));
      }
}

TEST(AdamW, LikeTorch) {
  for (double weight_decay : {0.0, 0.05})
    for (double beta1 : {0.0, 0.9}) {
      SCOPED_TRACE(fmt::format("decay {} beta1 {}", weight_decay, beta1));
      const auto ours = adamw({.beta1 = beta1, .beta2 = 0.99, .weight_decay = weight_decay});
      EXPECT_EQ(ours->state_copies(), 2);
      expect_like_torch<torch::optim::AdamW>(*ours, torch::optim::AdamWOptions(1)
                                                        .betas(std::make_tuple(beta1, 0.99))
                                                        .weight_decay(weight_decay));
    }
}

TEST(Adam, LikeTorch) {
  for (double weight_decay : {0.0, 0.05})
    for (double beta1 : {0.0, 0.9}) {
      SCOPED_TRACE(fmt::format("decay {} beta1 {}", weight_decay, beta1));
      const auto ours = adam({.beta1 = beta1, .beta2 = 0.99, .weight_decay = weight_decay});
      EXPECT_EQ(ours->state_copies(), 2);
      expect_like_torch<torch::optim::Adam>(*ours, torch::optim::AdamOptions(1)
                                                       .betas(std::make_tuple(beta1, 0.99))
                                                       .weight_decay(weight_decay));
    }
}

TEST(Sgd, RefusesWhatMakesNoStep) {
  expect_refusal([] { sgd({.learning_rate = -1}); }, "[sgd] learning rate -1 must be at least 0");
  expect_refusal([] { sgd({.momentum = -0.1}); }, "momentum -0.1");
  expect_refusal([] { sgd({.weight_decay = std::numeric_limits<double>::infinity()}); },
                 "weight decay inf");
  expect_refusal([] { sgd({.momentum = 0, .nesterov = true}); }, "needs momentum");
  expect_refusal([] { sgd({})->set_learning_rate(std::numeric_limits<double>::quiet_NaN()); },
                 "learning rate nan");
}

TEST(AdamW, RefusesWhatMakesNoStep) {
  expect_refusal([] { adamw({.beta1 = 1}); }, "[adamw] beta1 1 must be in [0, 1)");
  expect_refusal([] { adamw({.beta2 = -0.5}); }, "beta2 -0.5");
  expect_refusal([] { adamw({.epsilon = -1}); }, "epsilon -1");
  expect_refusal([] { adam({.weight_decay = -1}); }, "[adam] weight decay -1");
}

}  // namespace
}  // namespace tessera::optimiser_test

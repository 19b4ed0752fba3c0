#pragma once
// Focal loss (Lin et al., "Focal Loss for Dense Object Detection", 2017): cross entropy in which a
// pixel counts less the better it is already classified, for classes of very different frequency.
//
// Sigmoid form, as torchvision's sigmoid_focal_loss with reduction "mean": every channel is a
// yes-or-no question, s is the logistic function, and the mean goes over all elements of
//
//   a (1 - p)^gamma (-t log s(x) - (1 - t) log s(-x)),  p = t s(x) + (1 - t) s(-x),
//   a = alpha t + (1 - alpha) (1 - t), or 1 without alpha
//
// Softmax form, on labels only: with q the softmax over the channels and w the class weights, the
// mean over the pixels that count (not over their weights) of
//
//   w_t (1 - q_t)^gamma (-log q_t)
//
// Targets of the sigmoid form are as for binary_cross_entropy.
//
// Example:
//   focal(graph, logits, target, "loss", {.gamma = 1.5, .form = FocalOptions::Form::kSoftmax});

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/ops/loss/loss_target.h"

namespace tessera {

struct FocalOptions {
  enum class Form { kSigmoid, kSoftmax };

  double gamma = 2;                        // at least 0, which makes it cross entropy
  double alpha = -1;                       // sigmoid form: share of yes, in [0, 1]; below 0: none
  std::vector<double> class_weights = {};  // softmax form: one per class; none: all 1
  Form form = Form::kSigmoid;
  int64_t ignore_index = -100;  // labels only
  double weight = 1;            // factor on the loss
};

ValueId focal(Graph& graph, ValueId logits, ValueId target, const std::string& name,
              const FocalOptions& options = {});

}  // namespace tessera

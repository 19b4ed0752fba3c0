#pragma once
// A loss as users write it: terms joined by '+', each with an optional factor and options.
//
//   cross_entropy
//   0.5*bce + 0.5*dice:average=batch
//   cross_entropy:class_weights=1/2/1,ignore_index=255 + focal:gamma=1.5
//   cross_entropy:class_weights=auto
//
// Numbers have no '+' in their exponents.

#include <string>
#include <variant>
#include <vector>

#include "tessera/base/key_values.h"
#include "tessera/ops/loss/binary_cross_entropy.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/loss/dice.h"
#include "tessera/ops/loss/focal.h"
#include "tessera/ops/loss/regression_loss.h"

namespace tessera {

/// The kind of target that a term can be compared with.
enum class TargetKind { kLabels, kReal, kEither };

struct LossTerm {
  std::string name = {};
  TargetKind target = TargetKind::kEither;
  std::variant<CrossEntropyOptions, BinaryCrossEntropyOptions, DiceOptions, FocalOptions,
               MeanSquaredErrorOptions, MeanAbsoluteErrorOptions, SmoothL1Options, HuberOptions>
      options = {};  // their weight is the term's factor
  /// Dice without a given activation: softmax over several classes of labels, else sigmoid.
  bool activation_by_target = false;
  /// class_weights=auto: from the labels of the training samples, where there are any.
  bool weights_by_labels = false;
};

struct LossSpec {
  std::vector<LossTerm> terms;
};

/// Throws InvalidInput, with the legal names, keys and values, where the text is not a loss.
LossSpec parse_loss(const std::string& text);

struct LossInfo {
  std::string name;
  std::string summary;
  std::vector<KeyInfo> keys;
};
/// All terms that a loss may have, with their options and defaults.
std::vector<LossInfo> known_losses();
/// The same as a table, for --help and the documentation.
std::string loss_help();

}  // namespace tessera

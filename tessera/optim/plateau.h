#pragma once
// Lowers the learning rate where a validation metric no longer gets better, by the rule and the
// defaults of torch.optim.lr_scheduler.ReduceLROnPlateau (threshold_mode rel, no cooldown). All
// ranks give it the same values and so agree on the rate. Its state is plain data, saved with a
// checkpoint: a resumed run lowers the rate where the uninterrupted one would.
//
// Example:
//   Plateau plateau({.learning_rate = 0.1, .patience = 5});
//   plateau.update(validation_loss);
//   optimiser->set_learning_rate(plateau.rate());

#include <cstdint>
#include <optional>

namespace tessera {

class Plateau {
 public:
  enum class Mode { kMin, kMax };

  struct Options {
    double learning_rate = 0.01;  // at first
    double factor = 0.1;          // of a drop; in [0, 1)
    int64_t patience = 10;        // values in a row that are not better, before one more is a drop
    double threshold = 1e-4;      // least part by which a better value is better
    double min_learning_rate = 0;
    Mode mode = Mode::kMin;
  };
  struct State {
    double rate = 0;
    std::optional<double> best;  // none before the first value that is a number
    int64_t num_bad = 0;         // values since the best, or since the last drop
    bool operator==(const State&) const = default;
  };

  /// Throws InvalidInput, naming the option, where one is outside its range.
  explicit Plateau(const Options& options);

  /// The value of one more validation. NaN is never better.
  void update(double value);
  double rate() const { return state_.rate; }

  const State& state() const { return state_; }
  void load_state(const State& state) { state_ = state; }

 private:
  bool is_better(double value) const;

  Options options_;
  State state_;
};

}  // namespace tessera

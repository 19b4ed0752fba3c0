#pragma once
// Stops a run that no longer gets better: when `patience` validations in a row have not improved
// the best value by more than `min_delta`. Its state is plain data, saved with a checkpoint, so
// that a resumed run stops where the uninterrupted one would.
//
// Example:
//   EarlyStopping stopping({.patience = 5, .mode = EarlyStopping::Mode::kMax});
//   if (stopping.update(mean_iou) == EarlyStopping::Verdict::kImproved) save_best();
//   if (stopping.should_stop()) break;

#include <cstdint>
#include <optional>

namespace tessera {

class EarlyStopping {
 public:
  enum class Mode { kMin, kMax };
  enum class Verdict { kImproved, kNotImproved };

  struct Options {
    int64_t patience = 0;  // 0: never stop, still keep the best
    double min_delta = 0;
    Mode mode = Mode::kMin;
  };
  struct State {
    std::optional<double> best;  // none before the first value that is a number
    int64_t num_without = 0;     // values since the best
    bool operator==(const State&) const = default;
  };

  /// Throws InvalidInput for a negative patience or delta.
  explicit EarlyStopping(const Options& options);

  /// The value of one more validation. NaN is never better.
  Verdict update(double value);
  bool should_stop() const;

  const State& state() const { return state_; }
  void load_state(const State& state) { state_ = state; }

 private:
  bool improves(double value) const;

  Options options_;
  State state_;
};

}  // namespace tessera

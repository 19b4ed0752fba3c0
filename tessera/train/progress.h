#pragma once
// Shows how far a run is. On a terminal one line is redrawn:
//
//   epoch 3/10  step 120/400  [###>......]   30%  loss 0.4321  lr 1.00e-02  2.0 Mpx/s  ETA 1:23
//
// Elsewhere (a file, a batch system's log) plain lines come at most every few seconds, without
// control characters. Ranks other than 0 show nothing: callers need not ask which rank they are.
//
// Speed and ETA come from the last steps only, so that the slow first step is soon forgotten and a
// resumed run does not count steps that it did not take.
//
// Example:
//   Progress progress({.style = progress_style(rank), .total_steps = 400, .num_epochs = 10});
//   progress.show({.epoch = 3, .step = 120, .loss = 0.43, .learning_rate = 0.01, .amount = 4096});
//   progress.say("checkpoint written");
//   progress.finish();

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace tessera {

enum class ProgressStyle { kTerminal, kLines, kSilent };

/// Of stderr on this rank: silent but on rank 0, a terminal only where control characters work.
ProgressStyle progress_style(int rank);

/// What the speed is told in: pixels, or images where each has one label.
enum class ProgressUnit { kPixels, kImages };

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::kSilent;
  int64_t first_step = 0;  // steps done before this run: it was resumed
  int64_t total_steps = 0;
  int64_t num_epochs = 0;
  ProgressUnit unit = ProgressUnit::kPixels;
  double line_seconds = 10;              // between plain lines, at least
  double redraw_seconds = 0.1;           // between redrawn ones
  std::ostream* stream = nullptr;        // none: stderr
  std::function<double()> seconds = {};  // a clock that never goes back; none: steady_clock
  std::function<int()> columns = {};     // of the terminal; none: asks stderr
};

/// After a step.
struct ProgressUpdate {
  int64_t epoch = 0;  // from 1
  int64_t step = 0;   // steps done
  double loss = 0;
  double learning_rate = 0;
  int64_t amount = 0;                            // pixels or images of this step, over all ranks
  std::optional<double> residual = {};           // of multigrid; none: layers follow each other
  std::optional<double> gradient_residual = {};  // ... where it is measured
};

class Progress {
 public:
  explicit Progress(const ProgressOptions& options);

  void show(const ProgressUpdate& update);
  /// A line of its own, above the redrawn one.
  void say(std::string_view message);
  /// Ends the redrawn line, so that what follows starts on a fresh one.
  void finish();

 private:
  struct Mark {
    double seconds;
    int64_t step;
    int64_t amount;  // since the run began
  };
  void remember(double now, const ProgressUpdate& update);
  std::string speed() const;
  std::string remaining(int64_t step) const;
  std::string text(const ProgressUpdate& update) const;
  std::string bar(const ProgressUpdate& update, size_t room) const;
  void draw(const ProgressUpdate& update);

  ProgressOptions options_;
  std::deque<Mark> marks_;  // the last steps
  double last_shown_;
  bool shown_ = false;
  bool line_open_ = false;  // the terminal's cursor stands on the redrawn line
};

/// 75 → "1:15", 3675 → "1:01:15", a day and more → "1d 02:03:04".
std::string format_duration(double seconds);

}  // namespace tessera

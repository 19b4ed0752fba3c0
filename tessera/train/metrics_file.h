#pragma once
// The curve of a run, as CSV: a header, then one row per logged step, flushed as it is written, so
// that it can be watched and survives a kill. A resumed run drops the rows that it will write
// again; its file is then like an uninterrupted run's.
//
// Example:
//   MetricsFile metrics(path, {"loss", "lr", "val_mean_iou"}, resumed_at);
//   metrics.append(120, {0.43, 0.01, std::nullopt});   // 120,0.43,0.01,

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/files/temporary_file.h"

namespace tessera {

class MetricsFile {
 public:
  /// Starts a new file; or, with `resumed_at`, keeps the rows up to that step (and makes the file
  /// where there is none). A last row that a kill cut short is dropped. Throws InvalidInput where
  /// the columns differ from the file's, a line is not a row, steps do not ascend, or the file
  /// cannot be written.
  MetricsFile(const std::string& path, const std::vector<std::string>& columns,
              std::optional<int64_t> resumed_at);

  /// One value per column after "step"; none leaves the cell empty. Numbers are written so that
  /// reading them gives the same bits. Throws InvalidInput where the disk is full.
  void append(int64_t step, const std::vector<std::optional<double>>& values);
  /// On the disk, not only with the system. Call before a checkpoint: rows that it counts on must
  /// not get lost with the machine.
  void sync();

 private:
  size_t num_columns_;
  std::optional<TemporaryFile> file_;  // committed: rows go to the file that has the name
};

}  // namespace tessera

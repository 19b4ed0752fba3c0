#pragma once
// What a run leaves on the disk, read without the program's own code: the tests must not trust the
// code that they test.

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// Empty where there is no such file.
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);

/// The step of the last whole row of a run's metrics.csv; 0 where there is none.
int64_t last_step(const std::string& run);

/// The checkpoints of a run, oldest first: "RUN/checkpoints/step-000004".
std::vector<std::string> checkpoints(const std::string& run);

/// Why a folder is not a whole checkpoint: a file that is missing, text that is not JSON, tensors
/// that are shorter or longer than both the state and their own header say. Empty where all is
/// well, and where another program has removed the folder meanwhile: a rank may outlive
/// its launcher.
std::string fault_of_checkpoint(const std::string& folder);

/// Writes float32 values as a .npy file of this shape.
void write_npy(const std::string& path, const std::vector<int64_t>& shape,
               const std::vector<float>& values);
/// The same with bytes.
void write_npy(const std::string& path, const std::vector<int64_t>& shape,
               const std::vector<uint8_t>& values);

/// A folder for one test, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tessera

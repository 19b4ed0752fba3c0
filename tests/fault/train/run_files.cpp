#include "tests/fault/train/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The end of the data that a safetensors file's header speaks of; -1 where it cannot be read.
int64_t end_by_header(const std::string& bytes) {
  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof(header_bytes)) return -1;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  if (header_bytes > bytes.size() - sizeof(header_bytes)) return -1;
  const Json header = Json::parse(bytes.substr(sizeof(header_bytes), header_bytes), nullptr, false);
  if (!header.is_object()) return -1;
  int64_t end = 0;
  for (const auto& [name, entry] : header.items())
    if (entry.contains("data_offsets"))
      end = std::max(end, entry["data_offsets"][1].get<int64_t>());
  return static_cast<int64_t>(sizeof(header_bytes) + header_bytes) + end;
}

std::string fault_of_files(const std::string& folder) {
  const std::string tensors = read_file(folder + "/tensors.safetensors");
  const Json state = Json::parse(read_file(folder + "/state.json"), nullptr, false);
  if (!state.is_object()) return "state.json is missing or no JSON";
  const int64_t bytes = static_cast<int64_t>(tensors.size());
  if (state.at("tensor_file_bytes").get<int64_t>() != bytes)
    return fmt::format("{} bytes of tensors, the state says {}", bytes,
                       state.at("tensor_file_bytes").dump());
  if (end_by_header(tensors) != bytes)
    return fmt::format("{} bytes of tensors, their header says {}", bytes, end_by_header(tensors));
  return "";
}

void write_npy_bytes(const std::string& path, const std::vector<int64_t>& shape, const char* type,
                     const void* data, size_t data_bytes) {
  std::string sizes;
  for (int64_t size : shape) sizes += fmt::format("{},", size);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, sizes);
  header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');  // the data begins at a multiple
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() % 256);
  bytes += static_cast<char>(header.size() / 256);
  bytes += header;
  bytes.append(static_cast<const char*>(data), data_bytes);
  write_file(path, bytes);
}

}  // namespace

std::string read_file(const std::string& path) {
  try {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  } catch (const std::ios_base::failure&) {  // below /proc: the process has just ended
    return {};
  }
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

int64_t last_step(const std::string& run) {
  std::string text = read_file(run + "/metrics.csv");
  const size_t end = text.rfind('\n');
  if (end == std::string::npos || end == 0) return 0;
  const size_t before = text.rfind('\n', end - 1);
  return before == std::string::npos ? 0 : std::atoll(text.c_str() + before + 1);
}

std::vector<std::string> checkpoints(const std::string& run) {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run + "/checkpoints", none))
    // A file under such a name is not a checkpoint: somebody else has laid it there.
    if (entry.is_directory() && entry.path().filename().string().starts_with("step-"))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string fault_of_checkpoint(const std::string& folder) {
  const std::string fault = fault_of_files(folder);
  return fs::exists(folder) ? fault : "";
}

void write_npy(const std::string& path, const std::vector<int64_t>& shape,
               const std::vector<float>& values) {
  write_npy_bytes(path, shape, "<f4", values.data(), values.size() * sizeof(float));
}

void write_npy(const std::string& path, const std::vector<int64_t>& shape,
               const std::vector<uint8_t>& values) {
  write_npy_bytes(path, shape, "|u1", values.data(), values.size());
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "tessera-train-fault-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace tessera

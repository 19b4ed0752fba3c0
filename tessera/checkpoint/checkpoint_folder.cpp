#include "tessera/checkpoint/checkpoint_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/files/file_error.h"
#include "tessera/files/folder.h"
#include "tessera/files/json.h"
#include "tessera/files/read_text.h"
#include "tessera/graph/checksum.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTensors = "tensors.safetensors";
constexpr const char* kState = "state.json";

std::string file_in(const std::string& folder, const char* name) {
  return (fs::path(folder) / name).string();
}

StateFile describe(const TrainingState& state, bool is_best, uint64_t tensor_file_bytes) {
  StateFile file{state, is_best, tensor_file_bytes, {}};
  file.state.tensors.clear();
  for (const auto& [name, tensor] : state.tensors) file.checksums[name] = checksum(tensor);
  return file;
}

void check_size(const StateFile& state, uint64_t tensor_file_bytes) {
  if (tensor_file_bytes != state.tensor_file_bytes)
    throw_error<InvalidInput>("{} has {} bytes, but by {} {} were written", kTensors,
                              tensor_file_bytes, kState, state.tensor_file_bytes);
}

/// Reads every tensor once, checks it, and only then gives it to `take`.
template <class Take>
void read_tensors(const StateFile& state, const SafetensorsFile& tensors, const Take& take) {
  check_size(state, tensors.size());
  if (tensors.entries().size() != state.checksums.size())
    throw_error<InvalidInput>("{} has {} tensors, but by {} {} were written", kTensors,
                              tensors.entries().size(), kState, state.checksums.size());
  for (const auto& [name, sum] : state.checksums) {
    if (!tensors.contains(name))
      throw_error<InvalidInput>("{} has no tensor {}, which by {} was written", kTensors,
                                excerpt(name), kState);
    at::Tensor tensor = tensors.tensor(name);
    if (checksum(tensor) != sum)
      throw_error<InvalidInput>(
          "tensor {} in {} does not match its checksum in {}: one of them is damaged", name,
          kTensors, kState);
    take(name, std::move(tensor));
  }
}

// The errors of both files, with the folder and what to do.
template <class Read>
auto with_place(const std::string& folder, const Read& read) {
  try {
    return read();
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("[checkpoint] {} cannot be used: {}", folder, error.what());
  }
}

StateFile read_state(const std::string& folder) {
  const std::string path = file_in(folder, kState);
  std::error_code error;
  if (!fs::exists(folder, error)) throw_error<InvalidInput>("there is no such folder");
  if (!fs::exists(path, error))
    throw_error<InvalidInput>("it is not a checkpoint of Tessera, for it has no {}", kState);
  const std::string text = read_text(path, "checkpoint");
  try {
    return parse_state(text);
  } catch (const InvalidInput& fault) {
    throw_error<InvalidInput>("{}: {}", kState, cut_short(fault.what()));
  }
}

/// The state comes first: where it is missing, the folder is not a checkpoint at all.
template <class Take>
StateFile read_all(const std::string& folder, const Take& take) {
  StateFile state = read_state(folder);
  read_tensors(state, SafetensorsFile(file_in(folder, kTensors)), take);
  return state;
}

}  // namespace

void write_checkpoint_folder(const std::string& folder, const TrainingState& state, bool is_best) {
  if (::mkdir(folder.c_str(), 0777) != 0) throw_file_error("make the folder", folder, errno);
  OutputFile tensors = OutputFile::create(file_in(folder, kTensors));
  write_safetensors(tensors, state.tensors);
  tensors.sync();
  OutputFile text = OutputFile::create(file_in(folder, kState));
  text.append(format_state(describe(state, is_best, tensors.bytes())));
  text.sync();
  sync_folder(folder);
}

void check_checkpoint_folder(const std::string& folder) {
  with_place(folder, [&] { read_all(folder, [](const std::string&, at::Tensor) {}); });
}

TrainingState load_checkpoint_folder(const std::string& folder) {
  return with_place(folder, [&] {
    NamedTensors tensors;
    TrainingState state = read_all(folder, [&](const std::string& name, at::Tensor tensor) {
                            tensors.emplace_back(name, std::move(tensor));
                          }).state;
    state.tensors = std::move(tensors);
    return state;
  });
}

StateFile read_state_file(const std::string& folder) {
  return with_place(folder, [&] {
    StateFile state = read_state(folder);
    std::error_code error;
    const uint64_t bytes = fs::file_size(file_in(folder, kTensors), error);
    if (error) throw_error<InvalidInput>("{}: {}", kTensors, error.message());
    check_size(state, bytes);
    return state;
  });
}

bool holds_only_checkpoint_files(const std::string& folder) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(folder, error))) return false;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name != kTensors && name != kState) return false;
  }
  return !error;
}

}  // namespace tessera

#pragma once
// One checkpoint as a folder of two files: how it is written, and how it is checked before a byte
// of it is believed.

#include <string>

#include "tessera/checkpoint/safetensors.h"
#include "tessera/checkpoint/state_file.h"

namespace tessera {

/// Makes the folder, which must not exist, and forces it and its files to the disk.
void write_checkpoint_folder(const std::string& folder, const TrainingState& state, bool is_best);

/// Reads every byte and throws InvalidInput with folder and fault; keeps nothing.
void check_checkpoint_folder(const std::string& folder);
/// The same, and keeps what was checked: nothing is read a second time, when it may be another
/// file.
TrainingState load_checkpoint_folder(const std::string& folder);

/// Reads state.json alone, which costs little, and the size of the other file; its tensors may
/// still be damaged.
StateFile read_state_file(const std::string& folder);

/// True where a folder holds nothing but files that a checkpoint has. Only such folders are
/// removed.
bool holds_only_checkpoint_files(const std::string& folder);

}  // namespace tessera

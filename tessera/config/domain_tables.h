#pragma once
// The tables of a configuration file that describe the data of one domain each, for networks of
// several domains. They say what `--data 'source=...;target1=...'` says, with --batch and --epochs,
// --target-batch and --target-epochs:
//
//   [data.source]               --data 'source=folder:mnist;target1=list:m.csv,shuffle=no'
//   source = "folder:mnist"
//   batch = 32                  --batch 32
//   epochs = 20                 --epochs 20
//
//   [data.target1]
//   source = "list:m.csv"
//   batch = 8                   --target-batch 8
//   epochs = 5                  --target-epochs 5
//   shuffle = false
//
// Every other key is an option of the data set.

#include <string>
#include <vector>

#include "tessera/config/config_layer.h"
#include "tessera/config/toml.h"

namespace tessera {

/// Whether the entry stands in such a table.
bool is_of_domain(const TomlEntry& entry);

/// What the entries of all these tables come to; nothing where there are none. Throws InvalidInput
/// with line and column.
ConfigLayer parse_domain_tables(const std::vector<TomlEntry>& entries,
                                const std::string& file_name);

}  // namespace tessera

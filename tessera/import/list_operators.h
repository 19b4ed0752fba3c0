#pragma once
// Lists, tuples and dictionaries of TorchScript, whose items may be tensors of the network.

#include <optional>
#include <string>
#include <vector>

#include "tessera/import/symbol.h"

namespace tessera {

/// The result of an operator such as aten::append on a list, tuple or dictionary; none where the
/// first argument is none of these or the operator is another one. Throws InvalidInput for an index
/// or key that is not there.
std::optional<std::vector<Symbol>> run_on_list(const std::string& op,
                                               const std::vector<Symbol>& arguments);

}  // namespace tessera

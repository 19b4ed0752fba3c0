#pragma once
// A profile as text for people and as JSON for programs.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/inspect/profile.h"

namespace tessera {

enum class SortBy { kOrder, kFlops, kBytes, kParameters };

struct TableOptions {
  SortBy sort = SortBy::kOrder;  // the largest first, or the order of the graph
  /// Show only so many operators, the largest by `sort` (by FLOPs where that is the order of the
  /// graph). 0: all of them. Totals are always those of all.
  int64_t max_operators = 0;
};

/// The operators that the options choose, as positions in profile.operators.
std::vector<size_t> select_operators(const GraphProfile& profile, const TableOptions& options);

/// Operators, kinds and totals in aligned columns.
std::string to_table(const GraphProfile& profile, const TableOptions& options = {});

/// One object: {"dtype", "operators": [...], "kinds": {...}, "totals": {...}}.
std::string to_json(const GraphProfile& profile, const TableOptions& options = {});

/// "31x31"; "all" along an axis that it sees whole; "≥31" where the image's border may have cut it.
std::string to_string(const ReceptiveField& field);

/// "1" where it is the same before and after a part along every axis, "-3/+2", "all".
std::string to_string(const std::vector<HaloAxis>& halo);

}  // namespace tessera

#pragma once
// Numbers as users write them: sizes such as 1x3x512x512, or bytes such as 16GiB.

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// "2x3" → {2, 3}. Every number is at least 1, their product stays below 2^62. Throws InvalidInput
/// that names `what`.
std::vector<int64_t> parse_sizes(const std::string& text, const std::string& what);

/// "1,0.4" → {1, 0.4}. Throws InvalidInput that names `what`.
std::vector<double> parse_reals(const std::string& text, const std::string& what);

/// "16GiB", "500MB", "1024": binary units with an i, decimal ones without.
int64_t parse_bytes(const std::string& text, const std::string& what);

/// 1536 → "1.50 KiB".
std::string format_bytes(int64_t bytes);

}  // namespace tessera

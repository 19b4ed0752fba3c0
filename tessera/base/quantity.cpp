#include "tessera/base/quantity.h"

#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "tessera/base/error.h"

namespace tessera {

std::vector<int64_t> parse_sizes(const std::string& text, const std::string& what) {
  constexpr int64_t kMaxProduct = int64_t{1} << 62;
  std::vector<int64_t> sizes;
  int64_t product = 1;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error == std::errc::result_out_of_range)
      throw_error<InvalidInput>("[{}] {} holds a number that is too large", what, text);
    if (error != std::errc() || (next != end && *next != 'x'))
      throw_error<InvalidInput>("[{}] \"{}\" is not a list of sizes; write them as 2x3", what,
                                text);
    if (size < 1)
      throw_error<InvalidInput>("[{}] {} holds {}; sizes are at least 1", what, text, size);
    if (size > kMaxProduct / product)
      throw_error<InvalidInput>("[{}] {} has more than 2^62 elements", what, text);
    product *= size;
    sizes.push_back(size);
    if (next == end) return sizes;
    at = next + 1;
  }
}

std::vector<double> parse_reals(const std::string& text, const std::string& what) {
  std::vector<double> numbers;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    size_t used = 0;
    try {
      numbers.push_back(std::stod(item, &used));
    } catch (const std::exception&) {
    }
    if (item.empty() || used != item.size() || !std::isfinite(numbers.back()))
      throw_error<InvalidInput>("[{}] \"{}\" is not a list of numbers; write them as 1,0.4", what,
                                text);
  }
  if (numbers.empty()) throw_error<InvalidInput>("[{}] holds no number", what);
  return numbers;
}

int64_t parse_bytes(const std::string& text, const std::string& what) {
  static const std::map<std::string, double> units{{"", 1},
                                                   {"B", 1},
                                                   {"KB", 1e3},
                                                   {"MB", 1e6},
                                                   {"GB", 1e9},
                                                   {"TB", 1e12},
                                                   {"KiB", 1024},
                                                   {"MiB", 1048576.},
                                                   {"GiB", 1073741824.},
                                                   {"TiB", 1099511627776.}};
  size_t digits = 0;
  double number = NAN;
  try {
    number = std::stod(text, &digits);
  } catch (const std::exception&) {
  }
  const auto unit = units.find(text.substr(std::min(digits, text.size())));
  if (std::isnan(number) || number <= 0 || unit == units.end() || number * unit->second > 0x1p62)
    throw_error<InvalidInput>("[{}] \"{}\" is not a size in bytes; write 16GiB, 500MB or 1024",
                              what, text);
  return static_cast<int64_t>(number * unit->second);
}

std::string format_bytes(int64_t bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  constexpr double kRoundsUp = 1023.995;  // 1.00 MiB rather than 1024.00 KiB
  double number = static_cast<double>(bytes);
  int unit = 0;
  while (number >= kRoundsUp && unit < 6) {
    number /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", number, units[unit]);
}

}  // namespace tessera

#pragma once
// JSON from files that cannot be trusted. The parser is strict where nlohmann's own is not: a name
// that occurs twice in an object is refused (it would silently keep the last), and so are more
// levels or values than any file of ours has, so that neither the stack nor the memory of those who
// walk the tree can run out. Time grows with the length of the text, not with its square.
//
// Example:
//   const nlohmann::json plan = parse_json(read_text(path, "--plan"));
//   count = whole_number(plan["data"], "data", 1, 64);

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tessera {

struct JsonLimits {
  int max_depth = 64;
  int64_t max_values = 1 << 22;
};

/// Throws InvalidInput with the fault, without the name of the file, which the caller adds.
nlohmann::json parse_json(std::string_view text, const JsonLimits& limits = {});
/// The same with the names of objects in the order of the file.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const JsonLimits& limits = {});

/// Throws InvalidInput with `name`, the value and the legal ones.
int64_t whole_number(const nlohmann::json& value, const std::string& name, int64_t least,
                     int64_t most);

/// A value as text for programs; negative: on one line. Paths may hold bytes that are not UTF-8,
/// which JSON cannot say: each becomes a replacement character.
std::string json_text(const nlohmann::json& value, int indent = -1);
/// The same for one text.
std::string as_utf8(const std::string& text);

/// A text that a file has brought into a message: a hostile one may have megabytes.
std::string cut_short(std::string text, size_t longest = 2000);

/// A value as messages show it: its text, cut short where it is long.
std::string excerpt(const nlohmann::json& value);
/// The same of a text, in quotes.
std::string excerpt(const std::string& text);

}  // namespace tessera

#include "tessera/files/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Builds the tree as nlohmann's parser, which calls it, comes along the text.
template <class Json>
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  using Text = typename Json::string_t;
  static constexpr bool kIsOrdered = std::is_same_v<Json, nlohmann::ordered_json>;

  explicit StrictBuilder(const JsonLimits& limits) : limits_(limits) {}
  Json take() { return std::move(root_); }

  bool null() override { return add(Json()), true; }
  bool boolean(bool value) override { return add(Json(value)), true; }
  bool number_integer(int64_t value) override { return add(Json(value)), true; }
  bool number_unsigned(uint64_t value) override { return add(Json(value)), true; }
  bool number_float(double value, const Text&) override { return add(Json(value)), true; }
  bool string(Text& value) override { return add(Json(std::move(value))), true; }
  bool binary(typename Json::binary_t&) override { return false; }  // not in JSON
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(Text& name) override {
    Level& level = levels_.back();
    auto& object = level.value->template get_ref<typename Json::object_t&>();
    bool is_new = false;
    if constexpr (kIsOrdered) {  // its emplace() would look through all names before it adds one
      is_new = level.names.insert(name).second;
      level.member = &object.emplace_back(name, Json()).second;
    } else {
      const auto [place, added] = object.emplace(name, Json());
      is_new = added;
      level.member = &place->second;
    }
    if (!is_new) throw_error<InvalidInput>("the name {} occurs twice in one object", excerpt(name));
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    throw_error<InvalidInput>("it is not JSON ({})", cut_short(error.what(), 200));
  }

 private:
  struct Level {
    Json* value;                // an open array or object
    Json* member = nullptr;     // of an object: what the next value is for
    std::set<Text> names = {};  // of an object that keeps their order
  };

  /// A parent does not grow while a child is open, so pointers into it stay valid.
  Json* add(Json value) {
    if (++num_values_ > limits_.max_values)
      throw_error<InvalidInput>("it has more than {} values", limits_.max_values);
    if (levels_.empty()) return &(root_ = std::move(value));
    Level& level = levels_.back();
    if (level.member != nullptr) return &(*level.member = std::move(value));
    auto& array = level.value->template get_ref<typename Json::array_t&>();
    return &array.emplace_back(std::move(value));
  }

  bool open(Json container) {
    if (static_cast<int>(levels_.size()) == limits_.max_depth)
      throw_error<InvalidInput>("it is nested too deeply: at most {} levels are read",
                                limits_.max_depth);
    levels_.push_back({add(std::move(container))});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  Json root_;
  std::vector<Level> levels_;
  int64_t num_values_ = 0;
};

template <class Json>
Json parse_strictly(std::string_view text, const JsonLimits& limits) {
  StrictBuilder<Json> builder(limits);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const JsonLimits& limits) {
  return parse_strictly<nlohmann::json>(text, limits);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, const JsonLimits& limits) {
  return parse_strictly<nlohmann::ordered_json>(text, limits);
}

std::string cut_short(std::string text, size_t longest) {
  if (text.size() > longest) text.replace(longest, std::string::npos, "...");
  return text;
}

int64_t whole_number(const nlohmann::json& value, const std::string& name, int64_t least,
                     int64_t most) {
  // nlohmann's own conversions take 2.5 for 2, true for 1, and wrap what does not fit.
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) &&
                    value.get<int64_t>() >= least && value.get<int64_t>() <= most;
  if (!fits)
    throw_error<InvalidInput>("\"{}\" holds {}; give a whole number from {} to {}", name,
                              excerpt(value), least, most);
  return value.get<int64_t>();
}

std::string excerpt(const std::string& text) { return excerpt(nlohmann::json(text)); }

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string as_utf8(const std::string& text) {
  return nlohmann::json::parse(json_text(text)).get<std::string>();
}

std::string excerpt(const nlohmann::json& value) {
  return cut_short(value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), 80);
}

}  // namespace tessera

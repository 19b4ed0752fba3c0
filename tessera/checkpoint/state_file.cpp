#include "tessera/checkpoint/state_file.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "tessera/base/counts.h"
#include "tessera/base/error.h"
#include "tessera/files/json.h"
#include "tessera/graph/checksum.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "tessera-checkpoint";
constexpr int64_t kVersion = 1;

// JSON has no infinity; the shortest text that reads back to the same bits has.
std::string real_text(double value) { return fmt::format("{}", value); }

double parse_real(const std::string& text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size())
    throw_error<InvalidInput>("\"best_metric\" holds {}, which is not a number", excerpt(text));
  return value;
}

uint64_t parse_checksum(const std::string& text) {
  uint64_t sum = 0;
  std::from_chars(text.data(), text.data() + text.size(), sum, 16);
  if (checksum_text(sum) != text) throw_error<InvalidInput>("{} is not a checksum", excerpt(text));
  return sum;
}

json to_json(const StateFile& file) {
  const TrainingState& state = file.state;
  json checksums = json::object();
  for (const auto& [name, sum] : file.checksums) checksums[name] = checksum_text(sum);
  return {{"format", kFormat},
          {"version", kVersion},
          {"step", state.step},
          {"epoch", state.epoch},
          {"position_in_epoch", state.position_in_epoch},
          {"seed", state.seed},
          {"best_metric", real_text(state.best_metric)},
          {"is_best", file.is_best},
          {"metadata", state.metadata},
          {"tensor_file_bytes", file.tensor_file_bytes},
          {"tensor_checksums", checksums}};
}

const json& member(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end())
    throw_error<InvalidInput>("it is truncated or damaged: \"{}\" is missing", name);
  return *found;
}

int64_t count_of(const json& object, const char* name, int64_t most = INT64_MAX) {
  return whole_number(member(object, name), name, 0, most);
}

uint64_t unsigned_of(const json& object, const char* name) {
  const json& value = member(object, name);
  if (!value.is_number_unsigned())
    throw_error<InvalidInput>("\"{}\" holds {}, which is not a whole number from 0", name,
                              excerpt(value));
  return value.get<uint64_t>();
}

std::string text_of(const json& value, const std::string& name) {
  if (!value.is_string())
    throw_error<InvalidInput>("{} holds {}, which is not a text", excerpt(name), excerpt(value));
  return value.get<std::string>();
}

const json& object_of(const json& object, const char* name) {
  const json& value = member(object, name);
  if (!value.is_object())
    throw_error<InvalidInput>("\"{}\" holds {}, which is not an object", name, excerpt(value));
  return value;
}

StateFile from_json(const json& object) {
  StateFile file;
  file.state.step = count_of(object, "step", kMostCounted);
  file.state.epoch = count_of(object, "epoch");
  file.state.position_in_epoch = count_of(object, "position_in_epoch");
  file.state.seed = unsigned_of(object, "seed");
  file.state.best_metric = parse_real(text_of(member(object, "best_metric"), "best_metric"));
  const json& is_best = member(object, "is_best");
  if (!is_best.is_boolean())
    throw_error<InvalidInput>("\"is_best\" holds {}, which is not true or false", excerpt(is_best));
  file.is_best = is_best.get<bool>();
  for (const auto& [name, text] : object_of(object, "metadata").items())
    file.state.metadata[name] = text_of(text, name);
  file.tensor_file_bytes = unsigned_of(object, "tensor_file_bytes");
  for (const auto& [name, sum] : object_of(object, "tensor_checksums").items())
    file.checksums[name] = parse_checksum(text_of(sum, name));
  return file;
}

// Before the checksum, which another version may keep in another place.
void check_kind(const json& object) {
  if (!object.is_object() || !object.contains("format") || object["format"] != kFormat)
    throw_error<InvalidInput>("it is not the state of a Tessera checkpoint");
  const json version = object.value("version", json());
  if (version != kVersion)
    throw_error<InvalidInput>(
        "it has format version {}; this program reads {}: use the program that wrote it",
        excerpt(version), kVersion);
}

}  // namespace

std::string format_state(const StateFile& file) {
  try {
    json object = to_json(file);
    object["checksum"] = checksum_text(checksum(object.dump()));
    std::string text = object.dump(1);
    text.push_back('\n');
    return text;
  } catch (const json::exception& error) {
    throw_error<InvalidInput>("the metadata is not UTF-8 text ({})", error.what());
  }
}

StateFile parse_state(std::string_view text) {
  json object;
  try {
    object = parse_json(text);
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("it is truncated or damaged: {}", error.what());
  }
  check_kind(object);
  const std::string sum = text_of(member(object, "checksum"), "checksum");
  object.erase("checksum");
  if (checksum_text(checksum(object.dump())) != sum)
    throw_error<InvalidInput>("it does not match its checksum: it was damaged or edited");
  return from_json(object);
}

}  // namespace tessera

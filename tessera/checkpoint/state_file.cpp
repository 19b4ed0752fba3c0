#include "tessera/checkpoint/state_file.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
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
    throw_error<InvalidInput>("\"{}\" is not a number", text);
  return value;
}

uint64_t parse_checksum(const std::string& text) {
  uint64_t sum = 0;
  std::from_chars(text.data(), text.data() + text.size(), sum, 16);
  if (checksum_text(sum) != text) throw_error<InvalidInput>("\"{}\" is not a checksum", text);
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

StateFile from_json(const json& object) {
  StateFile file;
  object.at("step").get_to(file.state.step);
  object.at("epoch").get_to(file.state.epoch);
  object.at("position_in_epoch").get_to(file.state.position_in_epoch);
  object.at("seed").get_to(file.state.seed);
  file.state.best_metric = parse_real(object.at("best_metric").get<std::string>());
  object.at("is_best").get_to(file.is_best);
  object.at("metadata").get_to(file.state.metadata);
  object.at("tensor_file_bytes").get_to(file.tensor_file_bytes);
  for (const auto& [name, sum] : object.at("tensor_checksums").items())
    file.checksums[name] = parse_checksum(sum.get<std::string>());
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
        version.dump(), kVersion);
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
  try {
    json object = json::parse(text.begin(), text.end());
    check_kind(object);
    const std::string sum = object.at("checksum").get<std::string>();
    object.erase("checksum");
    if (checksum_text(checksum(object.dump())) != sum)
      throw_error<InvalidInput>("it does not match its checksum: it was damaged or edited");
    return from_json(object);
  } catch (const json::exception& error) {
    throw_error<InvalidInput>("it is truncated or damaged ({})", error.what());
  }
}

}  // namespace tessera

#include "tessera/train/run_results.h"

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/files/json.h"

namespace tessera {
namespace {

double real_member(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !(found->is_number() || found->is_null()))
    throw_error<InvalidInput>("\"{}\" must be a number or null", name);
  return found->is_null() ? NAN : found->get<double>();
}

ValidationResult validation_in(const nlohmann::json& object) {
  ValidationResult result;
  result.loss = real_member(object, "loss");
  for (const ScoreName& score : all_scores()) {
    if (!object.contains(score.name)) continue;
    result.names.push_back(score);
    result.scores.*score.value = real_member(object, score.name);
  }
  return result;
}

nlohmann::json validation_json(const ValidationResult& result) {
  nlohmann::json json{{"loss", result.loss}};
  for (const ScoreName& score : result.names) json[score.name] = result.scores.*score.value;
  return json;
}

}  // namespace

std::string to_json(const RunResults& results) {
  nlohmann::json json{{"loss", results.loss}};
  if (results.validation) json["validation"] = validation_json(*results.validation);
  for (const auto& [name, result] : results.targets)
    json["target_validations"][name] = validation_json(result);
  return json_text(json);
}

RunResults parse_results(const std::string& text) {
  const nlohmann::json json = parse_json(text);
  RunResults results;
  results.loss = real_member(json, "loss");
  if (json.contains("validation")) results.validation = validation_in(json["validation"]);
  if (const auto targets = json.find("target_validations"); targets != json.end())
    for (const auto& [name, validation] : targets->items())
      results.targets[name] = validation_in(validation);
  return results;
}

}  // namespace tessera

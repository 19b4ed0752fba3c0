#include "tessera/cli/config_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "tessera/cli/file_options.h"
#include "tessera/config/config_layer.h"
#include "tessera/job/run_source.h"

namespace tessera::cli {
namespace {

/// The default as the help shows it: nothing where the help text says it, or where there is none.
std::string default_text(const ConfigKey& key) {
  static const TrainConfig defaults;
  const ConfigValue value = key.get(defaults);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return "";
}

std::string help_of(const ConfigKey& key) {
  std::string help = key.help;
  if (!key.choices.empty()) help += fmt::format(": {}", fmt::join(key.choices, ", "));
  if (const std::string text = default_text(key); !text.empty()) help += fmt::format(" [{}]", text);
  return help;
}

const char* value_name(ConfigType type) {
  switch (type) {
    case ConfigType::kText:
      return "TEXT";
    case ConfigType::kSizes:
    case ConfigType::kGrids:
      return "AxB";
    case ConfigType::kWhole:
      return "N";
    case ConfigType::kReal:
      return "X";
    case ConfigType::kFlag:
      break;
  }
  return "";
}

/// Whether the key says which images are read and what becomes of them.
bool is_about_images(const ConfigKey& key) {
  static const std::vector<std::string> options{
      "--data", "--channels-last",       "--normalise", "--orientation",       "--spacing",
      "--crop", "--crop-centres",        "--crop-fill", "--patches-per-image", "--augment",
      "--seed", "--validation-fraction", "--fold"};
  return std::ranges::count(options, key.option) > 0;
}

/// "--learning-rate,--lr".
std::string names_of(const ConfigKey& key) {
  std::string names = key.option;
  for (const std::string& alias : key.aliases) names += "," + alias;
  return names;
}

/// "placement" → "Placement".
std::string title(std::string table) {
  table[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(table[0])));
  return table;
}

void add_option(CLI::App& command, const ConfigKey& key, const std::string& name,
                const std::string& group, std::vector<std::pair<std::string, std::string>>* given) {
  const auto take = [given, &key](const std::string& text) {
    given->emplace_back(key.option, text);
  };
  CLI::Option* option = nullptr;
  if (key.type == ConfigType::kFlag)
    option = command.add_flag_callback(
        name, [take] { take("true"); }, help_of(key));
  else
    option = command.add_option_function<std::string>(name, take, help_of(key));
  option->group(group)->type_name(value_name(key.type));
}

}  // namespace

void ConfigOptions::add_to(CLI::App& command, Keys keys) {
  command_ = &command;
  keys_ = keys;
  command
      .add_option("--config", config_file_, "TOML file; the command line overrides what it says")
      ->type_name("FILE");
  for (const ConfigKey& key : config_keys())
    if (knows(key)) add_option(command, key, names_of(key), title(key.table), &given_);
  for (const ConfigKey& key : config_keys())
    if (knows(key) && !key.old_option.empty() &&
        command.get_option_no_throw(key.old_option) == nullptr)
      add_option(command, key, key.old_option, /*group=*/"", &given_);
}

TrainConfig ConfigOptions::read() const { return read_over({}, given_, ""); }

ConfigOptions::OfRun ConfigOptions::read_of_run() const {
  Given given = given_;
  const auto model = std::ranges::find(given, "MODEL", &Given::value_type::first);
  if (model == given.end() || !names_a_run(model->second)) return {read(), ""};
  const std::string run = model->second;
  given.erase(model);
  return {read_over(run_config(run), given, run), run};
}

TrainConfig ConfigOptions::read_over(TrainConfig config, const Given& given,
                                     const std::string& run) const {
  if (!config_file_.empty()) apply_layer(config, read_config_file(config_file_));
  ConfigLayer command_line;
  for (const auto& [option, text] : given) command_line.push_back(config_option(option, text));
  apply_layer(config, command_line);
  check_file_options(command_->get_name(), [&](const std::string& option) {
    return option == kRunInPlaceOfModel ? run : text_of(option, config);
  });
  return config;
}

bool ConfigOptions::knows(const ConfigKey& key) const {
  if (keys_ == Keys::kData) return is_about_images(key);
  return keys_ == Keys::kTraining || key.scope == ConfigScope::kJob;
}

/// Of a key as the configuration says, and of the command's own options as they were given.
std::string ConfigOptions::text_of(const std::string& option, const TrainConfig& config) const {
  for (const ConfigKey& key : config_keys()) {
    if (key.option != option || !knows(key)) continue;
    const ConfigValue value = key.get(config);
    return std::holds_alternative<std::string>(value) ? std::get<std::string>(value) : "";
  }
  return given_text(*command_, option);
}

}  // namespace tessera::cli

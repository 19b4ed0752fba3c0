#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/cli/command.h"
#include "tessera/zoo/zoo.h"

namespace tessera::cli {
namespace {

void print_json() {
  nlohmann::json list = nlohmann::json::array();
  for (const ModelInfo& model : models()) {
    nlohmann::json options = nlohmann::json::object();
    for (const OptionInfo& option : model.options)
      options[option.name] = {{"default", option.default_value}, {"help", option.help}};
    list.push_back({{"name", model.name},
                    {"summary", model.summary},
                    {"spatial_axes", model.num_spatial},
                    {"default_input", model.default_input},
                    {"parameters", build_model(model.name).num_trainable()},
                    {"options", options}});
  }
  fmt::print("{}\n", list.dump(2));
}

void print_table() {
  for (const ModelInfo& model : models()) {
    fmt::print("{:<8} {}\n", model.name, model.summary);
    fmt::print("         {} spatial {}, default input {}, {:.2f} M parameters\n", model.num_spatial,
               model.num_spatial == 1 ? "axis" : "axes", to_string(model.default_input),
               static_cast<double>(build_model(model.name).num_trainable()) / 1e6);
    for (const OptionInfo& option : model.options)
      fmt::print("           {:<14} {}\n", fmt::format("{}={}", option.name, option.default_value),
                 option.help);
  }
}

}  // namespace

void add_models(CLI::App& app, int*) {
  CLI::App* command =
      app.add_subcommand("models", "what the zoo holds: options, parameters, input");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "a JSON list on stdout");
  command->callback([json] { *json ? print_json() : print_table(); });
}

}  // namespace tessera::cli

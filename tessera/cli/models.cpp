#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/base/standard_streams.h"
#include "tessera/cli/command.h"
#include "tessera/files/json.h"
#include "tessera/import/import.h"
#include "tessera/import/operators.h"
#include "tessera/loss/loss_spec.h"
#include "tessera/zoo/zoo.h"

namespace tessera::cli {
namespace models_command {

const char* role_name(ParameterRole role) {
  switch (role) {
    case ParameterRole::kTrainable:
      return "trainable";
    case ParameterRole::kFrozen:
      return "frozen";
    case ParameterRole::kBuffer:
      return "buffer";
    case ParameterRole::kDerived:
      return "derived";
  }
  return "";
}

nlohmann::json description(const ModelInfo& model) {
  nlohmann::json options = nlohmann::json::object();
  for (const OptionInfo& option : model.options)
    options[option.name] = {{"default", option.default_value}, {"help", option.help}};
  return {{"name", model.name},
          {"summary", model.summary},
          {"spatial_axes", model.num_spatial},
          {"default_input", model.default_input},
          {"parameters", build_model(model.name).num_trainable()},
          {"options", options}};
}

void print_json() {
  nlohmann::json list = nlohmann::json::array();
  for (const ModelInfo& model : models()) list.push_back(description(model));
  print_out("{}\n", json_text(list, 2));
}

void print_entry(const ModelInfo& model) {
  print_out("{:<16} {}\n", model.name, model.summary);
  print_out("{:16} {} spatial {}, default input {}, {:.2f} M parameters\n", "", model.num_spatial,
            model.num_spatial == 1 ? "axis" : "axes", to_string(model.default_input),
            static_cast<double>(build_model(model.name).num_trainable()) / 1e6);
  for (const OptionInfo& option : model.options)
    print_out("{:16}   {:<14} {}\n", "", fmt::format("{}={}", option.name, option.default_value),
              option.help);
}

/// One object: what a weights file of the model holds.
void print_parameters_json(const std::string& spec) {
  nlohmann::json list = nlohmann::json::array();
  const Graph graph = build_model(spec);
  for (const Parameter& parameter : graph.parameters())
    list.push_back({{"name", parameter.name},
                    {"shape", parameter.shape},
                    {"role", role_name(parameter.role)}});
  print_out("{}\n", json_text({{"model", spec}, {"parameters", list}}, 2));
}

void print_parameters(const std::string& spec) {
  const Graph graph = build_model(spec);
  for (const Parameter& parameter : graph.parameters())
    print_out("{:<48} {:<16} {}\n", parameter.name, to_string(parameter.shape),
              role_name(parameter.role));
}

nlohmann::json operators_json() {
  nlohmann::json list = nlohmann::json::array();
  for (const OperatorFamily& family : operator_families())
    for (const Operator& op : family.operators)
      list.push_back({{"family", family.title}, {"names", op.names}, {"becomes", op.becomes}});
  return list;
}

nlohmann::json losses_json() {
  nlohmann::json list = nlohmann::json::array();
  for (const LossInfo& loss : known_losses()) {
    nlohmann::json options = nlohmann::json::object();
    for (const KeyInfo& key : loss.keys)
      options[key.name] = {{"default", key.default_value}, {"help", key.help}};
    list.push_back({{"name", loss.name}, {"summary", loss.summary}, {"options", options}});
  }
  return list;
}

struct Options {
  std::string model;
  bool json = false;
  bool parameters = false;
  bool operators = false;
  bool losses = false;
};

void run(const Options& options) {
  if (options.operators)
    print_out("{}", options.json ? json_text(operators_json(), 2) + "\n" : operator_table());
  else if (options.losses)
    print_out("{}", options.json ? json_text(losses_json(), 2) + "\n" : loss_help());
  else if (options.parameters)
    options.json ? print_parameters_json(options.model) : print_parameters(options.model);
  else if (!options.model.empty())
    options.json ? print_out("{}\n", json_text(description(find_model(options.model)), 2))
                 : print_entry(find_model(options.model));
  else if (options.json)
    print_json();
  else
    for (const ModelInfo& model : models()) print_entry(model);
}

}  // namespace models_command

void add_models(CLI::App& app, int*) {
  using namespace models_command;
  CLI::App* command =
      app.add_subcommand("models", "what the zoo holds: options, parameters, input");
  auto options = std::make_shared<Options>();
  CLI::Option* model = command->add_option("MODEL", options->model, "only this one: resnet18");
  command
      ->add_flag("--parameters", options->parameters,
                 "the names, shapes and roles of MODEL's parameters, as in its weights file")
      ->needs(model);
  command->add_flag("--operators", options->operators,
                    "the PyTorch operators that model files may use, as Markdown");
  command->add_flag("--losses", options->losses, "what --loss may say");
  command->add_flag("--json", options->json,
                    "one JSON document on stdout: a list, or an object for MODEL");
  command->callback([options] { run(*options); });
}

}  // namespace tessera::cli

#include "tessera/cli/usage.h"

#include "tessera/base/error.h"
#include "tessera/base/suggestion.h"
#include "tessera/base/text.h"

namespace tessera::cli {
namespace usage {

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

/// Those that help shows.
std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    if (!option->get_group().empty())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

void refuse_unknown_option(const CLI::App& command) {
  for (const std::string& word : command.remaining()) {
    if (!word.starts_with('-')) continue;
    const std::string option = word.substr(0, word.find('='));
    throw_error<InvalidInput>(
        "[{}] `tessera {}` has no such option{}; `tessera {} --help` lists them", option,
        command.get_name(), did_you_mean(option, names_of_options(command)), command.get_name());
  }
}

}  // namespace usage

std::vector<std::string> command_line_words(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.push_back("--help");
  return words;
}

void refuse_unknown_words(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  if (!given.empty()) return usage::refuse_unknown_option(*given.front());
  if (words.empty() || words[0].starts_with('-')) return;
  const std::vector<std::string> known = usage::names_of_commands(app);
  throw_error<InvalidInput>("[{}] is not a command{}; known: {}, help", words[0],
                            did_you_mean(words[0], known), joined(known));
}

}  // namespace tessera::cli

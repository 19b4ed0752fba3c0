#include "tessera/cli/usage.h"

#include <algorithm>

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

}  // namespace usage

std::vector<std::string> command_line_words(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.push_back("--help");
  return words;
}

void refuse_unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].starts_with('-')) return;
  const std::vector<std::string> known = usage::names_of_commands(app);
  if (std::ranges::find(known, words[0]) != known.end()) return;
  throw_error<InvalidInput>("[{}] is not a command{}; known: {}, help", words[0],
                            did_you_mean(words[0], known), joined(known));
}

void refuse_unknown_option(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands())
    for (const std::string& word : command->remaining()) {
      if (!word.starts_with('-')) continue;
      const std::string option = word.substr(0, word.find('='));
      const std::string& name = command->get_name();
      throw_error<InvalidInput>(
          "[{}] `tessera {}` has no such option{}; `tessera help {}` lists them", option, name,
          did_you_mean(option, usage::names_of_options(*command)), name);
    }
}

}  // namespace tessera::cli

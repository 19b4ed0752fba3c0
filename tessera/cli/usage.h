#pragma once
// The command line as a whole: `tessera help train`, and what to say of commands and options that
// nobody knows.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tessera::cli {

/// The words after the program's name. "help train" is "train --help", and "help" is "--help".
std::vector<std::string> command_line_words(int argc, char** argv);

/// Throws InvalidInput, with a suggestion, where the first word is neither a command nor an option.
void refuse_unknown_command(const CLI::App& app, const std::vector<std::string>& words);

/// After a parse that failed: throws InvalidInput, with a suggestion, where the command lacks an
/// option that was given. Else another thing is wrong.
void refuse_unknown_option(const CLI::App& app);

}  // namespace tessera::cli

#pragma once
// The options that name files, of all commands in one table, so that no command can forget to ask:
// a file that is written must be neither another one that is written nor one that is read, and its
// name must have the ending of its format.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace tessera::cli {

/// What an option was given; empty where it was not, or the command has no such option.
using TextOfOption = std::function<std::string(const std::string& option)>;

/// An option of no command: the folder of a run that was given in place of a model.
inline constexpr const char* kRunInPlaceOfModel = "RUN";

/// As the command line says.
std::string given_text(const CLI::App& command, const std::string& option);

/// Throws InvalidInput, naming both options, where two of them lead to one file: also through
/// links, or spelled in two ways; and where one has an ending that is not supported. Nothing is
/// read or written. Some options mean different files in different commands.
void check_file_options(const std::string& command, const TextOfOption& text_of);

}  // namespace tessera::cli

#pragma once
// The commands of `tessera`. Each lives in a file of its own and adds itself to the program: its
// options, and a callback that runs it and sets the exit code.

#include <CLI/CLI.hpp>

#include "tessera/base/exit_code.h"

namespace tessera::cli {

void add_models(CLI::App& app, int* exit_code);
void add_verify(CLI::App& app, int* exit_code);
void add_inspect(CLI::App& app, int* exit_code);
void add_plan(CLI::App& app, int* exit_code);
void add_bench(CLI::App& app, int* exit_code);
void add_train(CLI::App& app, int* exit_code);
void add_evaluate(CLI::App& app, int* exit_code);
void add_predict(CLI::App& app, int* exit_code);
void add_data(CLI::App& app, int* exit_code);
void add_devices(CLI::App& app, int* exit_code);

}  // namespace tessera::cli

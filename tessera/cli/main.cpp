#include <sstream>

#include "tessera/base/error.h"
#include "tessera/base/shortage.h"
#include "tessera/base/slow_work.h"
#include "tessera/base/standard_streams.h"
#include "tessera/cli/command.h"
#include "tessera/cli/starved_start.h"
#include "tessera/cli/usage.h"
#include "tessera/job/launch.h"

namespace {

using namespace tessera;

/// Every process of a job meets the same bad input; one says so.
int fail(int exit_code, const char* what) {
  if (is_secondary_process() && exit_code == kBadInput) return exit_code;
  print_error("tessera: {}\n", what);
  return exit_code;
}

/// The file that --config gives; empty where there is none.
std::string config_file(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands())
    if (const CLI::Option* option = command->get_option_no_throw("--config");
        option != nullptr && option->count() > 0)
      return option->as<std::string>();
  return "";
}
/// LibTorch's errors go on with a list of calls.
std::string first_line(const std::string& words) { return words.substr(0, words.find('\n')); }

int run_program(int argc, char** argv) {
  int exit_code = kOk;
  CLI::App app(
      "Trains convolutional networks on images that do not fit one device, with exactly the "
      "numbers "
      "that one big device would give.",
      "tessera");
  app.require_subcommand(1);
  app.set_version_flag("--version", TESSERA_VERSION);
  app.footer(
      "Exit codes: 0 ok, 1 the check failed, 2 bad usage or input, 3 a rank or the transport "
      "failed, 4 out of memory or other resources.\n`tessera help COMMAND` shows a command's "
      "options.");
  cli::add_models(app, &exit_code);
  cli::add_verify(app, &exit_code);
  cli::add_inspect(app, &exit_code);
  cli::add_plan(app, &exit_code);
  cli::add_bench(app, &exit_code);
  cli::add_train(app, &exit_code);
  cli::add_evaluate(app, &exit_code);
  cli::add_predict(app, &exit_code);
  cli::add_data(app, &exit_code);
  cli::add_devices(app, &exit_code);
  const std::vector<std::string> words = cli::command_line_words(argc, argv);
  cli::refuse_unknown_command(app, words);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // it takes the last first
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, complaint;  // help and version, or what is wrong with the command line
    const bool helped = app.exit(error, out, complaint) == 0;
    if (!helped) cli::refuse_unknown_option(app);
    write_out(out.str());
    write_error(complaint.str());
    return helped ? kOk : kBadInput;
  } catch (const InvalidInput& error) {
    // Some values are judged where they are used, and nobody knows there that a file gave them.
    const std::string file = config_file(app), message = error.what();
    if (file.empty() || message.find(file) != std::string::npos) throw;
    throw_error<InvalidInput>("{} (what is not on the command line comes from {})", message, file);
  }
  return exit_code;
}

int run_guarded(int argc, char** argv) {
  try {
    if (!is_secondary_process()) show_slow_work();
    return run_program(argc, argv);
  } catch (const OutOfMemory& error) {
    return fail(kOutOfMemory, error.what());
  } catch (const CommError& error) {
    return fail(kRankFailed, error.what());
  } catch (const InternalError& error) {
    return fail(kInternalError, error.what());
  } catch (const Error& error) {
    return fail(kBadInput, error.what());
  } catch (const std::exception& error) {
    if (is_shortage(error))
      return fail(kOutOfMemory,
                  fmt::format("[memory] this machine, or a limit on this process, has no more "
                              "memory or threads to give ({}); use a smaller input, fewer workers "
                              "or fewer threads",
                              first_line(error.what()))
                      .c_str());
    return fail(kInternalError, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  tessera::prepare_standard_streams();
  cli::end_of_start();
  tessera::remember_command_line(argc, argv);
  return checked_exit_code(run_guarded(argc, argv));
}

#include "tessera/cli/file_options.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/train_config.h"
#include "tessera/data/domain_specs.h"
#include "tessera/data/open.h"
#include "tessera/files/plain_path.h"
#include "tessera/import/import.h"
#include "tessera/job/result_file.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

enum class Role {
  kInput,      // a file, or a folder of files that are read
  kInputs,     // several: a.npy,b.npy
  kModel,      // a file, or a name of the zoo
  kData,       // files:images.npy,targets.npy or the like, or data that is made up
  kOutput,     // a file
  kResult,     // a file of a prediction, or a folder of them with a slash at the end
  kWeights,    // a file, with "best:" before it or not
  kRunFolder,  // a folder with files of fixed names
  kRunRead,    // the same of a run that is applied
};

struct FileOption {
  const char* option;
  Role role;
  const char* endings = "";  // of the formats that it is written in, with blanks between; none: any
  const char* command = "";  // the one that means this by it; empty: all

  bool is_of(const std::string& other) const { return *command == '\0' || command == other; }
};

constexpr FileOption kFileOptions[] = {{"MODEL", Role::kModel},
                                       {kRunInPlaceOfModel, Role::kRunRead},
                                       {"--encoder", Role::kInput},
                                       {"--private", Role::kInput},
                                       {"--decoder", Role::kInput},
                                       {"--head", Role::kInput},
                                       {"--config", Role::kInput},
                                       {"--init-weights", Role::kInput},
                                       {"--weights", Role::kInput},
                                       {"--plan", Role::kInput},
                                       {"--balance", Role::kInput},
                                       {"--resume", Role::kInput},
                                       {"--images", Role::kData},
                                       {"--data", Role::kData},
                                       {"SPEC", Role::kData},
                                       {"--input-npy", Role::kInput},
                                       {"--target-npy", Role::kInputs},
                                       {"--output", Role::kResult, "", "predict"},
                                       {"--output", Role::kOutput, ".json .csv", "evaluate"},
                                       {"--probabilities", Role::kResult},
                                       {"--raw", Role::kResult},
                                       {"--picture", Role::kOutput, ".png"},
                                       {"--overlay", Role::kOutput, ".png"},
                                       {"--save-weights", Role::kWeights, ".safetensors .pt"},
                                       {"--dump-gradients", Role::kOutput, ".safetensors"},
                                       {"--trace", Role::kOutput},
                                       {"--write-plan", Role::kOutput},
                                       {"--dot", Role::kOutput},
                                       {"--svg", Role::kOutput},
                                       {"--run", Role::kRunFolder}};

struct NamedFile {
  std::string option;
  std::string text;  // as it was given
  fs::path path;
};

struct Files {
  std::vector<NamedFile> read, written;
  std::vector<NamedFile> kept;  // folders that hold only what the program itself lays there
};

void add_input(const std::string& option, const std::string& text, Files* files) {
  if (std::error_code error; fs::exists(text, error))
    files->read.push_back({option, text, plain_path(text)});
}

void add(const FileOption& entry, const std::string& text, Files* files) {
  const std::string option = entry.option;
  switch (entry.role) {
    case Role::kInput:
      return add_input(option, text, files);
    case Role::kInputs:
      for (const std::string& path : split_text(text, ',')) add_input(option, path, files);
      return;
    case Role::kModel:
      if (names_a_file(text)) files->read.push_back({option, text, plain_path(text)});
      return;
    case Role::kData:
      for (const DomainSpec& domain : parse_domain_specs(text))
        for (const std::string& path : paths_in_spec(domain.spec)) add_input(option, path, files);
      return;
    case Role::kOutput:
    case Role::kResult:
    case Role::kWeights:
      files->written.push_back({option, text, plain_path(text)});
      return;
    case Role::kRunFolder: {
      for (const char* name : {"run.json", "metrics.csv"}) {
        const std::string file = (fs::path(text) / name).string();
        files->written.push_back({option, file, plain_path(file)});
      }
      const std::string folder = (fs::path(text) / "checkpoints").string();
      files->kept.push_back({option, folder, plain_path(folder)});
      return;
    }
    case Role::kRunRead:
      for (const char* name : {"run.json", "metrics.csv", "checkpoints"})
        add_input("MODEL", (fs::path(text) / name).string(), files);
      return;
  }
}

/// The file that an option names.
std::string file_in(const FileOption& entry, const std::string& text) {
  return entry.role == Role::kWeights ? weights_target(text).path : text;
}

void check_written(const NamedFile& file, const Files& files) {
  for (const NamedFile& input : files.read)
    if (lies_in(file.path, input.path))
      throw_error<InvalidInput>("[{}] {} would overwrite what {} reads, {}; give another name",
                                file.option, file.text, input.option, input.text);
  for (const NamedFile& folder : files.kept)
    if (lies_in(file.path, folder.path))
      throw_error<InvalidInput>(
          "[{}] {} lies in {}, which is for the checkpoints of {}; give another folder",
          file.option, file.text, folder.text, folder.option);
}

/// A name tells the format. One of another format would be a file that nobody can open.
void check_ending(const FileOption& entry, const std::string& text) {
  if (entry.role == Role::kResult && names_a_folder(text)) return;
  const std::vector<std::string> endings =
      entry.role == Role::kResult ? result_endings() : split_text(entry.endings, ' ');
  if (text.empty() || std::ranges::any_of(endings, [&](const std::string& ending) {
        return text.ends_with(ending);
      }))
    return;
  throw_error<InvalidInput>("[{}] {} is not a name that ends in {}, the {} written", entry.option,
                            text, joined(endings, " or "),
                            endings.size() == 1 ? "format that is" : "formats that are");
}

}  // namespace

std::string given_text(const CLI::App& command, const std::string& option) {
  const CLI::Option* found = command.get_option_no_throw(option);
  return found != nullptr && !found->results().empty() ? found->results().back() : "";
}

void check_file_options(const std::string& command, const TextOfOption& given_text_of) {
  const auto text_of = [&](const FileOption& entry) {
    return entry.is_of(command) ? file_in(entry, given_text_of(entry.option)) : "";
  };
  Files files;
  for (const FileOption& entry : kFileOptions)
    if (const std::string text = text_of(entry); !text.empty()) add(entry, text, &files);
  for (auto file = files.written.begin(); file != files.written.end(); ++file) {
    check_written(*file, files);
    for (auto other = files.written.begin(); other != file; ++other)
      if (other->path == file->path)
        throw_error<InvalidInput>("[{}] {} is written by {}, too, as {}; give each its own file",
                                  file->option, file->text, other->option, other->text);
  }
  for (const FileOption& entry : kFileOptions) check_ending(entry, text_of(entry));
}

}  // namespace tessera::cli

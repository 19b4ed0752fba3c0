#include "tessera/config/domain_tables.h"

#include <fmt/format.h>

#include <map>

#include "tessera/base/domain_names.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

constexpr const char* kPrefix = "data.";

/// What the tables say of one domain.
struct DomainTable {
  std::string place;  // of its first entry: "run.toml:3:1: [data.target1]"
  std::string source;
  std::string options;  // ",shuffle=no,classes=3"
  int64_t batch = 0;    // 0: not said
  int64_t epochs = 0;   // 0: not said
};

std::string place_of(const TomlEntry& entry, const std::string& file_name) {
  return fmt::format("{}:{}:{}: [{}]", file_name, entry.key_line, entry.key_column, entry.table);
}

int domain_of(const TomlEntry& entry, const std::string& file_name) {
  const int domain = domain_called(entry.table.substr(std::string(kPrefix).size()));
  if (domain < 0)
    throw_error<InvalidInput>(
        "{} does not name a domain; write [data.source], [data.target1], [data.target2], ...",
        place_of(entry, file_name));
  return domain;
}

/// As the options of a data set are written.
std::string option_text(const TomlValue& value, const std::string& place) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) throw_error<InvalidInput>("{} is an array; give a single value", place);
  if (text->find(';') != std::string::npos)
    throw_error<InvalidInput>("{} holds a ';', which stands between domains; rename the files",
                              place);
  return *text;
}

int64_t count_of(const TomlEntry& entry, const std::string& place) {
  const auto* count = std::get_if<int64_t>(&entry.value);
  if (count == nullptr || *count < 1)
    throw_error<InvalidInput>("{} must be a whole number from 1 on", place);
  return *count;
}

void add_entry(const TomlEntry& entry, const std::string& file_name, DomainTable* table) {
  const std::string place = fmt::format("{} {}", place_of(entry, file_name), entry.key);
  if (table->place.empty()) table->place = place_of(entry, file_name);
  if (entry.key == "source") {
    table->source = option_text(entry.value, place);
  } else if (entry.key == "batch") {
    table->batch = count_of(entry, place);
  } else if (entry.key == "epochs") {
    table->epochs = count_of(entry, place);
  } else {
    table->options += fmt::format(",{}={}", entry.key, option_text(entry.value, place));
  }
}

/// As the command line gives it; what is wrong with it is wrong at `place`.
ConfigAssignment assignment(const std::string& option, const std::string& text,
                            const std::string& place) {
  ConfigAssignment made = config_option(option, text);
  made.place = place;
  return made;
}

using DomainTables = std::map<int, DomainTable>;

std::string data_of(const DomainTables& tables) {
  std::vector<std::string> specs;
  for (const auto& [domain, table] : tables) {
    if (table.source.empty())
      throw_error<InvalidInput>("{} has no source; name its data set: source = \"folder:PATH\"",
                                table.place);
    specs.push_back(fmt::format("{}={}{}", domain_name(domain), table.source, table.options));
  }
  return joined(specs, ";");
}

/// What the tables say by one key: the source's number by an option of its own, those of the
/// targets by one for all of them.
void add_counts(const DomainTables& tables, int64_t DomainTable::*count, const char* of_source,
                const char* of_targets, ConfigLayer* layer) {
  const std::string& place = tables.begin()->second.place;
  std::vector<std::string> counts(tables.rbegin()->first, "0");
  bool is_said = false;
  for (const auto& [domain, table] : tables) {
    if (table.*count == 0) continue;
    const std::string text = fmt::format("{}", table.*count);
    if (domain == 0)
      layer->push_back(assignment(of_source, text, place));
    else
      counts[domain - 1] = text;
    is_said = is_said || domain > 0;
  }
  if (is_said) layer->push_back(assignment(of_targets, joined(counts, "/"), place));
}

}  // namespace

bool is_of_domain(const TomlEntry& entry) { return entry.table.starts_with(kPrefix); }

ConfigLayer parse_domain_tables(const std::vector<TomlEntry>& entries,
                                const std::string& file_name) {
  std::map<int, DomainTable> tables;
  for (const TomlEntry& entry : entries)
    if (is_of_domain(entry)) add_entry(entry, file_name, &tables[domain_of(entry, file_name)]);
  if (tables.empty()) return {};
  const std::string place = tables.begin()->second.place;
  ConfigLayer layer{assignment("--data", data_of(tables), place)};
  add_counts(tables, &DomainTable::batch, "--batch", "--target-batch", &layer);
  add_counts(tables, &DomainTable::epochs, "--epochs", "--target-epochs", &layer);
  return layer;
}

}  // namespace tessera

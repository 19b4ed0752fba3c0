#include "tessera/data/domain_specs.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/graph/domains.h"

namespace tessera {
namespace {

/// 0 for "source", 1 for "target1", ...; -1 for other words.
int domain_called(const std::string& name) {
  if (name == "source") return 0;
  if (!name.starts_with("target")) return -1;
  const int number = read_number<int>(name.substr(6)).value_or(-1);
  return number > 0 && domain_name(number) == name ? number : -1;
}

std::string word_before_equals(const std::string& text) {
  const size_t equals = text.find('=');
  return equals == std::string::npos ? std::string() : text.substr(0, equals);
}

std::vector<std::string> names_of(int num_domains) {
  std::vector<std::string> names;
  for (int domain = 0; domain < num_domains; ++domain) names.push_back(domain_name(domain));
  return names;
}

std::string all_in_one(int num_domains) {
  std::vector<std::string> words;
  for (const std::string& name : names_of(num_domains)) words.push_back(name + "=...");
  return joined(words, ";");
}

}  // namespace

std::vector<DomainSpec> parse_domain_specs(const std::string& text) {
  if (domain_called(word_before_equals(text)) < 0) return {{"source", text}};
  std::vector<DomainSpec> specs;
  for (const std::string& part : split_text(text, ';')) {
    const std::string name = word_before_equals(part);
    if (domain_called(name) < 0)
      throw_error<InvalidInput>(
          "[--data] '{}' does not name a domain; write source=...;target1=... with a data set for "
          "each",
          part);
    for (const DomainSpec& other : specs)
      if (other.name == name)
        throw_error<InvalidInput>("[--data] {} is given twice; write it once", name);
    if (name.size() + 1 == part.size())
      throw_error<InvalidInput>("[--data] nothing follows {}=; name its data set, {}=folder:PATH",
                                name, name);
    specs.push_back({name, part.substr(name.size() + 1)});
  }
  return specs;
}

std::vector<std::string> specs_of_domains(const std::string& text, int num_domains) {
  std::vector<std::string> of_domains(num_domains);
  for (const DomainSpec& given : parse_domain_specs(text)) {
    const int domain = domain_called(given.name);
    if (domain >= num_domains)
      throw_error<InvalidInput>(
          "[--data] the network has no domain {}, it reads {}; leave it out, or give the model "
          "targets={}",
          given.name, joined(names_of(num_domains)), domain);
    of_domains[domain] = given.spec;
  }
  for (int domain = 0; domain < num_domains; ++domain)
    if (of_domains[domain].empty())
      throw_error<InvalidInput>(
          "[--data] there is no data for {}, and the network reads an image of each of {}; write "
          "--data '{}'",
          domain_name(domain), joined(names_of(num_domains)), all_in_one(num_domains));
  return of_domains;
}

}  // namespace tessera

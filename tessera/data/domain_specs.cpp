#include "tessera/data/domain_specs.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/domain_names.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

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

/// Takes shuffle=yes or shuffle=no out of the options.
DomainSpec without_shuffle(const std::string& name, const std::string& text) {
  DomainSpec domain{name, ""};
  for (const std::string& part : split_text(text, ',')) {
    if (part == "shuffle=no" || part == "shuffle=yes")
      domain.order = part == "shuffle=no" ? BatchOrder::kSequential : BatchOrder::kShuffled;
    else if (part.starts_with("shuffle="))
      throw_error<InvalidInput>("[--data] {}: {} is not legal; use shuffle=yes or shuffle=no", name,
                                part);
    else
      domain.spec += (domain.spec.empty() ? "" : ",") + part;
  }
  return domain;
}

}  // namespace

std::vector<DomainSpec> parse_domain_specs(const std::string& text) {
  if (domain_called(word_before_equals(text)) < 0) return {without_shuffle("source", text)};
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
    specs.push_back(without_shuffle(name, part.substr(name.size() + 1)));
  }
  return specs;
}

std::vector<DomainSpec> specs_of_domains(const std::string& text, int num_domains) {
  std::vector<DomainSpec> of_domains(num_domains);
  for (const DomainSpec& given : parse_domain_specs(text)) {
    const int domain = domain_called(given.name);
    if (domain >= num_domains)
      throw_error<InvalidInput>(
          "[--data] the network has no domain {}, it reads {}; leave it out, or give the model "
          "targets={}",
          given.name, joined(names_of(num_domains)), domain);
    of_domains[domain] = given;
  }
  for (int domain = 0; domain < num_domains; ++domain)
    if (of_domains[domain].spec.empty())
      throw_error<InvalidInput>(
          "[--data] there is no data for {}, and the network reads an image of each of {}; write "
          "--data '{}'",
          domain_name(domain), joined(names_of(num_domains)), all_in_one(num_domains));
  return of_domains;
}

}  // namespace tessera

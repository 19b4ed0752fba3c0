#include "tessera/base/domain_names.h"

#include "tessera/base/text.h"

namespace tessera {

std::string domain_name(int domain) {
  return domain == 0 ? "source" : "target" + std::to_string(domain);
}

int domain_called(std::string_view name) {
  if (name == "source") return 0;
  if (!name.starts_with("target")) return -1;
  const int number = read_number<int>(name.substr(6)).value_or(-1);
  return number > 0 && domain_name(number) == name ? number : -1;
}

}  // namespace tessera

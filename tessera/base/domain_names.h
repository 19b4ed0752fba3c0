#pragma once
// What the domains of a network are called that reads an image of each of several: "source" for
// domain 0, then "target1", "target2", ...

#include <string>
#include <string_view>

namespace tessera {

std::string domain_name(int domain);

/// The domain of that name; -1 for other words.
int domain_called(std::string_view name);

}  // namespace tessera

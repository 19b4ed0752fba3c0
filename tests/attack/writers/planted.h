#pragma once
// What somebody else has laid under a name that the program is going to use.

#include <string>

namespace tessera::attack {

enum class Planted {
  kNothing,
  kFile,        // an ordinary old file
  kHardLink,    // a second name of the bystander
  kLinkToFile,  // a link to a file that is there to be replaced
  kLinkToNowhere,
  kLinkToItself,
  kLinkToPipe,
  kPipe,
  kFolder,
  kSocket,
  kDevice,  // a null device; a pipe where we may not make devices
};
constexpr int kKindsOfPlanted = 11;

const char* name_of(Planted planted);

/// Whether a file of that name can be written.
bool can_be_replaced(Planted planted);

/// Lays it at `path`. Links lead into `others`, which has: a bystander (never to be changed), a
/// file "replaceable", a pipe, and nothing named "nowhere".
void plant(Planted planted, const std::string& path, const std::string& others);

/// Makes the folder `others`.
void make_others(const std::string& others);

}  // namespace tessera::attack

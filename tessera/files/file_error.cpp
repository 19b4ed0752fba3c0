#include "tessera/files/file_error.h"

#include <cerrno>
#include <system_error>

#include "tessera/base/error.h"

namespace tessera {
namespace {

const char* remedy(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space or choose another folder";
    case EFBIG:
      return "; raise the limit on the size of a file (ulimit -f) or choose another folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose a folder that you may write to, or change its permissions";
    case ENOENT:
      return "; check the path: every part of it but the last must be an existing folder";
    case ENOTDIR:
      return "; check the path: a part of it is a file where a folder must be";
    case ENAMETOOLONG:
      return "; give a shorter name";
    case EMFILE:
    case ENFILE:
      return "; raise the limit on open files (ulimit -n)";
    default:
      return "";
  }
}

}  // namespace

void throw_file_error(const std::string& attempt, const std::string& path, int error_number) {
  throw_error<InvalidInput>("[file] cannot {} {}: {}{}", attempt, path,
                            std::generic_category().message(error_number), remedy(error_number));
}

}  // namespace tessera

#pragma once
// The Python dictionary in a .npy header, by a parser for just that:
//
//   {'descr': '<f4', 'fortran_order': False, 'shape': (64, 512, 512), }
//
// Keys in any order, each exactly once; white space anywhere; nothing after the closing brace.

#include <string>
#include <string_view>

#include "tessera/geometry/box.h"

namespace tessera {

struct NpyDictionary {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

/// Throws InvalidInput with the place in the text. `file` is for messages.
NpyDictionary parse_npy_dictionary(std::string_view text, const std::string& file);

}  // namespace tessera

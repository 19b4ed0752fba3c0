#pragma once
// How the layers of a residual chain are solved by multigrid instead of one after the other
// (docs/multigrid.md): the numbers that users give as --multigrid.
//
// Example:
//   parse_multigrid("levels=3,coarsening=4,forward=2,relax=FCF")

#include <cstdint>
#include <string>

namespace tessera {

struct Multigrid {
  int64_t levels = 2;       // 1: no coarser level, which is exact
  int64_t coarsening = 4;   // steps of a level that one step of the next coarser level replaces
  int64_t forward = 2;      // V-cycles for the states
  int64_t backward = 1;     // V-cycles for their gradients
  int64_t relaxations = 1;  // updates of the C points before a level is left: F has 0, FCF 1
  bool skip = false;        // the first V-cycle only walks the coarsest level, for a first guess
  bool measure_gradients = false;  // the residual of the gradients, too; changes no number
  bool operator==(const Multigrid&) const = default;
};

/// From key=value,... with the keys levels, coarsening, forward, backward, relax (F, FC, FCF,
/// FCFCF, ...; FC is FCF, since the F after a C is needed for the residual anyway), skip (yes or
/// no) and measure (states or both). Throws InvalidInput with the legal values.
Multigrid parse_multigrid(const std::string& text);

/// What parse_multigrid() reads.
std::string to_string(const Multigrid& multigrid);

/// The V-cycles after which all states of a chain of so many layers are those of the serial run, to
/// the bit.
int64_t exact_iterations(const Multigrid& multigrid, int64_t num_layers);

}  // namespace tessera

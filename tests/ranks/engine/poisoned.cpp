// All rank tests run on poisoned arenas: what a kernel reads before it is written is not a number.

#include "tessera/runtime/arena.h"

namespace tessera {
namespace {

const PoisonedArenas poisoned;

}  // namespace
}  // namespace tessera

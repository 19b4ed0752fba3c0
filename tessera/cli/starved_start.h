#pragma once
// Libraries start threads and take memory while they are loaded, before main(). One that cannot
// have them ends the process in its own way: OpenBLAS raises SIGINT, others abort. Until main()
// takes over, such an end is exit code 4 and a word (starved_start.cpp).

namespace tessera::cli {

/// From here on signals have their usual meaning; except for the limit of CPU time, which ends the
/// process with exit code 4 and a word.
void end_of_start();

}  // namespace tessera::cli

#pragma once
// Independent pieces of work on a few threads: headers of many files, strips of labels. For reading
// before the first step; ranks have their own threads while they train.
//
// Example:
//   in_parallel(num_files, 8, [&](int64_t index, int64_t) { sizes[index] = size_of(index); });

#include <cstdint>
#include <functional>

namespace tessera {

/// Calls body(index, worker) once for each index in [0, count), on at most `threads` threads (fewer
/// where the system gives no more). Throws what the body throws at the lowest index at which it
/// fails; those after it are left out.
void in_parallel(int64_t count, int threads,
                 const std::function<void(int64_t index, int64_t worker)>& body);

/// As many as help to read files on this machine.
int reading_threads();

}  // namespace tessera

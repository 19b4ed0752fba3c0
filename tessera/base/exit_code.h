#pragma once
// How a process of Tessera ends, for scripts and for the launcher that judges its ranks
// (docs/errors.md).

namespace tessera {

inline constexpr int kOk = 0;
inline constexpr int kCheckFailed = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kRankFailed = 3;
inline constexpr int kOutOfMemory = 4;
inline constexpr int kInternalError = 70;

}  // namespace tessera

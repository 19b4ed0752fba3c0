#pragma once
// What communication threads tell each other besides the ranks' messages.
//
//   ping / pong   are you there? Yes, and these are the ranks that I wait for.
//   failure       the world has ended, and why. Everyone who learns it tells everyone once.
//   bye           this rank takes part no more.
//
// Failure and bye carry counts of what this rank has done with the addressee, because channels do
// not keep order among each other: the counts say what is still under way and what never will be.

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::mpi {

enum class ControlKind : int32_t { kPing, kPong, kFailure, kBye };

/// What one rank has done with one peer since the start.
struct PeerCounts {
  int64_t messages_sent = 0;
  int64_t messages_expected = 0;  // receives posted
  int64_t chunks_sent = 0;
};

struct Control {
  ControlKind kind = ControlKind::kPing;
  int origin = -1;      // of a failure: the rank that failed, -1 where no rank says so itself
  PeerCounts counts{};  // of a failure and a bye
  std::vector<int> waits_for{};  // of a pong, at most kMostWaits
  std::string reason{};          // of a failure, cut where it is too long
};

constexpr int64_t kControlBytes = 4096;
constexpr size_t kMostWaits = 32;

std::vector<char> encode(const Control& control);
Control decode(const char* data, int64_t bytes);

}  // namespace tessera::mpi

#pragma once
// Runs something dangerous in a child process first. TorchScript's reader was not written for
// hostile files: one that makes it crash, eat the memory or run for ever ends the child alone, and
// the user reads an error.

#include <functional>
#include <string>

namespace tessera {

struct TrialLimits {
  int64_t memory_bytes = int64_t{8} << 30;  // beyond what this process has now
  int cpu_seconds = 60;
};

/// Runs `body` in a forked child under limits. Whatever Error it throws is thrown here again; a
/// child that ends in another way is InvalidInput, naming `subject`. Not for a process with other
/// threads at work.
void try_in_child(const std::string& subject, const TrialLimits& limits,
                  const std::function<void()>& body);

}  // namespace tessera

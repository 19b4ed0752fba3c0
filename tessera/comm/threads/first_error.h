#pragma once
// Many ranks fail, one of them first. Its error is what the user must read: the others mostly say
// that a peer is gone.

#include <exception>
#include <mutex>
#include <string>

namespace tessera::threads {

class FirstError {
 public:
  /// Any thread. Only the first error counts, and the first PeerFailed where there is no other.
  void report(int rank, int size, std::exception_ptr error);

  /// After all threads have ended. Throws the error, if any: its kind stays, and its message names
  /// the rank.
  void rethrow() const;

 private:
  struct Kept {
    std::exception_ptr error;
    int rank = 0;
    int size = 0;
  };

  std::mutex mutex_;
  Kept primary_;
  Kept secondary_;
};

/// "[place] text" becomes "[place] rank r/size: text", unless it names this rank there already.
std::string with_rank(const std::string& message, int rank, int size);

}  // namespace tessera::threads

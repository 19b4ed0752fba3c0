#pragma once
// The errors that Tessera throws. One base class and five kinds, because the kind decides what the
// user can do about it and which exit code the program ends with (see docs/errors.md).
//
// Messages have one form: place, rank where it matters, actual values, legal values, remedy:
//   [conv2d enc1.0] rank 3/8: kernel 7 needs 3 rows of halo, ...; use at most 5 parts along height
//
// Example:
//   throw_error<InvalidInput>("[split] parts must be at least 1, got {}", parts);
//   TESSERA_CHECK(box.num_axes() == 4, "box {} has {} axes", to_string(box), box.num_axes());

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tessera {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user can fix it: a wrong option, shape, file. Exit code 2.
class InvalidInput : public Error {
 public:
  using Error::Error;
};

/// Legal, but not supported exactly; Tessera never approximates silently. Exit code 2.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// A rank or the transport is gone, or a wait ran out of time. Exit code 3.
class CommError : public Error {
 public:
  using Error::Error;
};

/// The plan needs more than the memory limit, or an allocation failed. Exit code 4.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// A broken invariant: our bug.
class InternalError : public Error {
 public:
  using Error::Error;
};

template <class Kind, class... Args>
[[noreturn]] void throw_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Kind(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tessera

/// Checks an invariant of ours and throws InternalError with the message when it does not hold.
#define TESSERA_CHECK(condition, ...)                                                           \
  do {                                                                                          \
    if (!(condition))                                                                           \
      ::tessera::throw_error<::tessera::InternalError>("{}:{}: {} does not hold: {}", __FILE__, \
                                                       __LINE__, #condition,                    \
                                                       ::fmt::format(__VA_ARGS__));             \
  } while (false)

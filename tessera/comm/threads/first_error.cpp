#include "tessera/comm/threads/first_error.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/shortage.h"
#include "tessera/comm/threads/world.h"

namespace tessera::threads {
namespace {

bool is_secondary(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const PeerFailed&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void FirstError::report(int rank, int size, std::exception_ptr error) {
  Kept& kept = is_secondary(error) ? secondary_ : primary_;
  std::lock_guard lock(mutex_);
  if (!kept.error) kept = {std::move(error), rank, size};
}

void FirstError::rethrow() const {
  const Kept& kept = primary_.error ? primary_ : secondary_;
  if (!kept.error) return;
  const auto named = [&](const std::exception& e) {
    return with_rank(e.what(), kept.rank, kept.size);
  };
  try {
    std::rethrow_exception(kept.error);
  } catch (const InvalidInput& e) {
    throw InvalidInput(named(e));
  } catch (const Unsupported& e) {
    throw Unsupported(named(e));
  } catch (const CommError& e) {
    throw CommError(named(e));
  } catch (const OutOfMemory& e) {
    throw OutOfMemory(named(e));
  } catch (const InternalError& e) {
    throw InternalError(named(e));
  } catch (const Error& e) {
    throw Error(named(e));
  } catch (const std::exception& e) {
    if (is_shortage(e)) throw OutOfMemory(named(e));
    throw InternalError(named(e));
  } catch (...) {
    throw InternalError(
        with_rank("threw something that is not a std::exception", kept.rank, kept.size));
  }
}

std::string with_rank(const std::string& message, int rank, int size) {
  const std::string name = fmt::format("rank {}/{}: ", rank, size);
  size_t text_begin = 0;
  if (!message.empty() && message.front() == '[') {
    const size_t place_end = message.find("] ");
    if (place_end != std::string::npos) text_begin = place_end + 2;
  }
  if (message.compare(text_begin, name.size(), name) == 0) return message;
  return message.substr(0, text_begin) + name + message.substr(text_begin);
}

}  // namespace tessera::threads

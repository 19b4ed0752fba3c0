#pragma once
// What the user reads where something is refused.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tessera/base/error.h"

namespace tessera {

/// The message of the exception of this kind that `action` throws; empty where it throws none.
template <class Kind, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

inline std::string refusal(const std::function<void()>& action) {
  return message_of<InvalidInput>(action);
}

inline void expect_refusal(const std::function<void()>& action, const std::string& part) {
  const std::string message = refusal(action);
  EXPECT_NE(message.find(part), std::string::npos)
      << "got '" << message << "', without '" << part << "'";
}

}  // namespace tessera

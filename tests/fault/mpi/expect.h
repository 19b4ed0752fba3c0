#pragma once
// What the tests ask of a job's end.

#include <gtest/gtest.h>

#include <string>

#include "tests/fault/mpi/job.h"

namespace tessera {

inline void expect_contains(const JobResult& result, const std::string& part) {
  EXPECT_NE(result.errors.find(part), std::string::npos)
      << "'" << part << "' is not in '" << result.errors << "'";
}

inline void expect_without(const JobResult& result, const std::string& part) {
  EXPECT_EQ(result.errors.find(part), std::string::npos)
      << "'" << part << "' is in '" << result.errors << "'";
}

}  // namespace tessera

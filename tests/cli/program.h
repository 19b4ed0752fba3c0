#pragma once
// Runs the program as a user would, and gives back what it said.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

inline std::string read_all(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Outcome tessera(const std::string& arguments) {
  const std::string err = testing::TempDir() + "tessera_stderr_" + std::to_string(getpid());
  const std::string command =
      std::string("timeout 60 ") + TESSERA_PROGRAM + " " + arguments + " 2>" + err;
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> chunk;
  for (size_t n; (n = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
    outcome.out.append(chunk.data(), n);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.err = read_all(err);
  std::remove(err.c_str());
  return outcome;
}

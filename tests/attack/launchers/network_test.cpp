// Where all ranks are on this machine, nobody else can reach them or their mpirun.

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/attack/launchers/attack.h"

namespace tessera::network_test {
namespace {

std::string target(const std::string& link) {
  std::error_code error;
  return std::filesystem::read_symlink(link, error).string();
}

/// The inodes of the sockets that a process has open.
std::set<std::string> sockets_of(pid_t pid) {
  std::set<std::string> inodes;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(fmt::format("/proc/{}/fd", pid), error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string to = target(entry->path());
    if (to.starts_with("socket:[")) inodes.insert(to.substr(8, to.size() - 9));
  }
  return inodes;
}

bool is_loopback(const std::string& address) {  // as /proc/net/tcp writes it, in host order
  return address.ends_with("7F") || address == "00000000000000000000000001000000" ||
         address.ends_with("FFFF00000100007F");
}

/// Addresses other than loopback on which a process listens.
Words open_addresses(pid_t pid) {
  Words found;
  const std::set<std::string> sockets = sockets_of(pid);
  for (const char* table : {"tcp", "tcp6"}) {
    std::ifstream file(fmt::format("/proc/{}/net/{}", pid, table));
    std::string line;
    for (std::getline(file, line); std::getline(file, line);) {
      std::istringstream words(line);
      std::string slot, local, remote, state, skipped, inode;
      words >> slot >> local >> remote >> state;
      for (int n = 0; n < 5; ++n) words >> skipped;
      words >> inode;
      const std::string address = local.substr(0, local.find(':'));
      if (state == "0A" && sockets.contains(inode) && !is_loopback(address)) found.push_back(local);
    }
  }
  return found;
}

/// The process has a network of its own with nothing in it but the loopback device.
bool is_alone(pid_t pid) {
  if (target(fmt::format("/proc/{}/ns/net", pid)) == target("/proc/self/ns/net")) return false;
  std::ifstream file(fmt::format("/proc/{}/net/dev", pid));
  std::string line;
  int num_others = 0, num_devices = 0;
  for (std::getline(file, line), std::getline(file, line); std::getline(file, line);) {
    ++num_devices;
    num_others += line.find(" lo:") == std::string::npos;
  }
  return num_devices > 0 && num_others == 0;
}

std::string name_of(pid_t pid) { return read_file(fmt::format("/proc/{}/comm", pid)); }

class Network : public LauncherAttack {};

TEST_F(Network, OfAJobOnThisMachineIsNotOpenToOthers) {
  if (!mpirun_is_there()) GTEST_SKIP() << "no mpirun on this machine";
  count_case();
  Program job(train("run", 1'000'000, {"--launch", "mpi"}), file("log"));
  ASSERT_TRUE(await([&] { return last_step(file("run")) >= 2 || job.ended(); }));
  ASSERT_EQ(job.ranks().size(), 2u) << job.errors();
  bool may_be_alone = false;
  for (const auto& [rank, pid] : job.ranks()) may_be_alone |= is_alone(pid);
  for (const pid_t pid : living_descendants()) {
    if (is_alone(pid)) continue;
    // Where the system gives no network of its own, mpirun itself cannot be helped.
    if (!may_be_alone && name_of(pid).starts_with("mpirun")) continue;
    EXPECT_EQ(open_addresses(pid), Words{}) << name_of(pid);
  }
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 0) << job.errors();
  expect_nothing_left();
}

}  // namespace
}  // namespace tessera::network_test

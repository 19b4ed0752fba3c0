// Shares of machines that are not here, and what is read of them.

#include "tessera/runtime/cores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/unit/scratch_folder.h"

namespace tessera::cores_test {
namespace {

/// CPU i is thread i / (nodes * cores_each) of core i % (nodes * cores_each), as Linux counts them.
std::vector<Core> machine(int nodes, int cores_each, int cpus_each) {
  std::vector<Core> cores;
  const int count = nodes * cores_each;
  for (int i = 0; i < count; ++i) {
    Core core{i / cores_each, {}};
    for (int cpu = 0; cpu < cpus_each; ++cpu) core.cpus.push_back(cpu * count + i);
    cores.push_back(core);
  }
  return cores;
}

std::vector<std::string> shares(const std::vector<Core>& cores, int ranks, int threads) {
  std::vector<std::string> texts;
  for (const Cpus& cpus : share_cores(cores, ranks, threads)) texts.push_back(to_text(cpus));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Cores, RanksHaveBlocksOfCores) {
  EXPECT_EQ(shares(machine(1, 4, 1), 4, 1), (Texts{"0", "1", "2", "3"}));
  EXPECT_EQ(shares(machine(1, 4, 1), 2, 2), (Texts{"0-1", "2-3"}));
  EXPECT_EQ(shares(machine(1, 4, 1), 1, 1), (Texts{"0-3"}));
}

TEST(Cores, WhatNobodyNeedsIsSharedOut) {
  EXPECT_EQ(shares(machine(1, 8, 1), 2, 1), (Texts{"0-3", "4-7"}));
  EXPECT_EQ(shares(machine(1, 7, 1), 3, 2), (Texts{"0-1", "2-3", "4-6"}));
}

TEST(Cores, SiblingsStayTogether) {
  EXPECT_EQ(shares(machine(2, 4, 2), 4, 2),
            (Texts{"0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"}));
}

TEST(Cores, SiblingsServeWhereThereAreTooFewCores) {
  EXPECT_EQ(shares(machine(1, 2, 2), 2, 2), (Texts{"0,2", "1,3"}));
  EXPECT_EQ(shares(machine(1, 2, 2), 4, 1),
            (Texts{"0", "2", "1", "3"}));  // each core has two ranks
  EXPECT_EQ(shares(machine(1, 8, 2), 3, 5), (Texts{"0-2,8-9", "3-4,10-12", "5-7,13-15"}));
}

TEST(Cores, NoRankIsOnTwoNodesWhereThatCanBe) {
  EXPECT_EQ(shares(machine(2, 4, 1), 3, 2), (Texts{"0-3", "4-5", "6-7"}));
  EXPECT_EQ(shares(machine(4, 2, 1), 2, 3), (Texts{"0-3", "4-7"}));
  // A core for each thread is worth more: five do not fit twice on eight.
  EXPECT_EQ(shares(machine(2, 8, 1), 3, 5), (Texts{"0-4", "5-9", "10-15"}));
  EXPECT_EQ(shares(machine(2, 6, 2), 3, 4), (Texts{"0-3,12-15", "4-7,16-19", "8-11,20-23"}));
}

TEST(Cores, TooFewAreNotShared) {
  EXPECT_TRUE(shares(machine(1, 2, 1), 3, 1).empty());
  EXPECT_TRUE(shares(machine(2, 4, 2), 2, 9).empty());
}

/// Whatever the machine: all CPUs once, enough for each rank.
TEST(Cores, SharesAreDisjointAndCoverAll) {
  for (int nodes = 1; nodes <= 4; ++nodes)
    for (int each = 1; each <= 5; ++each)
      for (int siblings = 1; siblings <= 2; ++siblings)
        for (int ranks = 1; ranks <= nodes * each * siblings; ++ranks)
          for (int threads = 1; ranks * threads <= nodes * each * siblings; ++threads) {
            SCOPED_TRACE(testing::Message() << nodes << " nodes of " << each << " cores of "
                                            << siblings << ", " << ranks << " x " << threads);
            const std::vector<Cpus> all =
                share_cores(machine(nodes, each, siblings), ranks, threads);
            ASSERT_EQ(all.size(), static_cast<size_t>(ranks));
            Cpus seen;
            for (const Cpus& cpus : all) {
              EXPECT_GE(cpus.size(), static_cast<size_t>(threads));
              EXPECT_TRUE(std::ranges::is_sorted(cpus));
              seen.insert(seen.end(), cpus.begin(), cpus.end());
            }
            std::ranges::sort(seen);
            ASSERT_EQ(seen.size(), static_cast<size_t>(nodes * each * siblings));
            for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<int>(i));
          }
}

TEST(Cores, ListsAreReadAndWritten) {
  for (const char* text : {"0", "0-3", "0,2", "1-2,5,7-9"}) {
    ASSERT_TRUE(parse_cpus(text)) << text;
    EXPECT_EQ(to_text(*parse_cpus(text)), text);
  }
  EXPECT_EQ(parse_cpus("3,1-2,2"), (Cpus{1, 2, 3}));
  for (const char* text : {"", "a", "1-", "-1", "2-1", "1-2-3", "0-99999999", "0,,1"})
    EXPECT_FALSE(parse_cpus(text)) << text;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text << "\n";
}

/// Two nodes of two cores of two CPUs, as Linux writes it, with the CPUs of a core side by side.
std::string written_machine(const std::filesystem::path& folder) {
  write(folder / "node/node0/cpulist", "0-3");
  write(folder / "node/node1/cpulist", "4-7");
  write(folder / "node/possible", "0-1");
  for (int cpu = 0; cpu < 8; ++cpu)
    write(folder / "cpu" / ("cpu" + std::to_string(cpu)) / "topology/thread_siblings_list",
          to_text({cpu / 2 * 2, cpu / 2 * 2 + 1}));
  return folder.string();
}

TEST(Cores, AreReadFromTheSystemsFiles) {
  const ScratchFolder folder;
  const std::string system = written_machine(folder.path());
  EXPECT_EQ(read_cores({0, 1, 2, 3, 4, 5, 6, 7}, system),
            (std::vector<Core>{{0, {0, 1}}, {0, {2, 3}}, {1, {4, 5}}, {1, {6, 7}}}));
  EXPECT_EQ(read_cores({1, 2, 6}, system), (std::vector<Core>{{0, {1}}, {0, {2}}, {1, {6}}}))
      << "only what this process may use";
}

TEST(Cores, WhereNothingIsWrittenACpuIsACore) {
  const ScratchFolder folder;
  EXPECT_EQ(read_cores({0, 3}, folder.path() + "/nowhere"),
            (std::vector<Core>{{0, {0}}, {0, {3}}}));
  write(folder.path() + "/cpu/cpu0/topology/thread_siblings_list", "nonsense");
  write(folder.path() + "/node/node0/cpulist", "");
  EXPECT_EQ(read_cores({0, 3}, folder.path()), (std::vector<Core>{{0, {0}}, {0, {3}}}));
}

}  // namespace
}  // namespace tessera::cores_test

#include "tessera/runtime/cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "tessera/base/text.h"

namespace tessera {
namespace {

using Block = std::vector<Core>;

/// Part `index` of `parts` contiguous ones, whose sizes differ by one at most.
template <class T>
std::vector<T> part_of(const std::vector<T>& all, size_t parts, size_t index) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(all.size() * index / parts);
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(all.size() * (index + 1) / parts);
  return {begin, end};
}

std::vector<Block> cut(const Block& cores, size_t ranks) {
  std::vector<Block> blocks;
  for (size_t rank = 0; rank < ranks; ++rank) blocks.push_back(part_of(cores, ranks, rank));
  return blocks;
}

std::vector<Block> nodes_of(const Block& cores) {
  std::vector<Block> nodes;
  for (const Core& core : cores) {
    if (nodes.empty() || nodes.back().back().node != core.node) nodes.emplace_back();
    nodes.back().push_back(core);
  }
  return nodes;
}

/// A rank has whole nodes, or a node has whole ranks.
std::vector<Block> cut_by_nodes(const Block& cores, size_t ranks) {
  const std::vector<Block> nodes = nodes_of(cores);
  std::vector<Block> blocks;
  if (ranks < nodes.size()) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      blocks.emplace_back();
      for (const Block& node : part_of(nodes, ranks, rank))
        blocks.back().insert(blocks.back().end(), node.begin(), node.end());
    }
    return blocks;
  }
  const std::vector<int> all(ranks);
  for (size_t node = 0; node < nodes.size(); ++node)
    for (Block& block : cut(nodes[node], part_of(all, nodes.size(), node).size()))
      blocks.push_back(std::move(block));
  return blocks;
}

Block one_core_a_cpu(const Block& cores) {
  Block all;
  for (const Core& core : cores)
    for (const int cpu : core.cpus) all.push_back({core.node, {cpu}});
  return all;
}

size_t num_cpus(const Block& block) {
  size_t count = 0;
  for (const Core& core : block) count += core.cpus.size();
  return count;
}

std::vector<Cpus> cpus_of(const std::vector<Block>& blocks) {
  std::vector<Cpus> all;
  for (const Block& block : blocks) {
    Cpus& cpus = all.emplace_back();
    for (const Core& core : block) cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
    std::ranges::sort(cpus);
  }
  return all;
}

/// What the first line of a file says; none where there is no such file.
Cpus listed_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return parse_cpus(line).value_or(Cpus());
}

std::map<int, int> read_nodes(const std::filesystem::path& folder) {
  std::map<int, int> node_of;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("node")) continue;
    const auto node = read_number<int>(name.substr(4));
    if (!node) continue;
    for (const int cpu : listed_in(entry->path() / "cpulist")) node_of[cpu] = *node;
  }
  return node_of;
}

}  // namespace

std::string to_text(const Cpus& cpus) {
  std::vector<std::string> words;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    words.push_back(last == i ? fmt::format("{}", cpus[i])
                              : fmt::format("{}-{}", cpus[i], cpus[last]));
    i = last + 1;
  }
  return joined(words, ",");
}

std::optional<Cpus> parse_cpus(const std::string& text) {
  Cpus cpus;
  for (const std::string& word : split_text(text, ',')) {
    const std::vector<std::string> ends = split_text(word, '-');
    const auto first = read_number<int>(ends.front()), last = read_number<int>(ends.back());
    if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first || *last >= kMostCpus)
      return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  std::ranges::sort(cpus);
  cpus.erase(std::ranges::unique(cpus).begin(), cpus.end());
  return cpus;
}

std::vector<Core> read_cores(const Cpus& cpus, const std::string& folder) {
  const std::filesystem::path system(folder);
  const std::map<int, int> node_of = read_nodes(system / "node");
  std::vector<Core> cores;
  std::map<int, size_t> core_of;  // of the CPUs that are placed
  for (const int cpu : cpus) {
    if (core_of.contains(cpu)) continue;
    const auto node = node_of.find(cpu);
    Core core{node == node_of.end() ? 0 : node->second, {}};
    Cpus siblings =
        listed_in(system / "cpu" / fmt::format("cpu{}", cpu) / "topology/thread_siblings_list");
    if (!std::ranges::binary_search(siblings, cpu)) siblings = {cpu};
    for (const int sibling : siblings)
      if (std::ranges::binary_search(cpus, sibling) &&
          core_of.emplace(sibling, cores.size()).second)
        core.cpus.push_back(sibling);
    cores.push_back(std::move(core));
  }
  std::ranges::stable_sort(cores, {}, &Core::node);
  return cores;
}

std::vector<Cpus> share_cores(const std::vector<Core>& cores, int ranks, int threads) {
  const auto count = static_cast<size_t>(ranks), least = static_cast<size_t>(threads);
  const std::vector<Block> by_nodes = cut_by_nodes(cores, count), by_cores = cut(cores, count);
  for (const auto& blocks : {by_nodes, by_cores})
    if (std::ranges::all_of(blocks, [&](const Block& b) { return b.size() >= least; }))
      return cpus_of(blocks);
  for (const auto& blocks : {by_nodes, by_cores, cut(one_core_a_cpu(cores), count)})
    if (std::ranges::all_of(blocks, [&](const Block& b) { return num_cpus(b) >= least; }))
      return cpus_of(blocks);
  return {};
}

}  // namespace tessera

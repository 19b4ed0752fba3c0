#include "tessera/cli/stage_picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tessera/base/quantity.h"
#include "tessera/base/text.h"
#include "tessera/graph/domains.h"
#include "tessera/lower/chunks.h"

namespace tessera::cli {
namespace {

std::string letter(int stage) {
  if (stage < 10) return std::string(1, static_cast<char>('0' + stage));
  return stage < 36 ? std::string(1, static_cast<char>('a' + stage - 10)) : "*";
}

/// The letter on a ground of the stage's colour.
std::string cell(int stage, Colours colours) {
  constexpr int kGrounds[] = {153, 222, 157, 218, 230, 183, 216, 152};  // of 256 terminal colours
  if (colours == Colours::kNone) return letter(stage);
  return fmt::format("\x1b[30;48;5;{}m{}\x1b[0m", kGrounds[stage % std::size(kGrounds)],
                     letter(stage));
}

/// By what the picture's lines differ: how many input pixels a pixel stands for; features, which
/// have no pixels, come below.
std::string resolution(const ValueType& type) {
  if (type.num_spatial() == 0) return "features";
  const Ratio stride = type.axes[type.first_spatial()].stride;
  return stride.den == 1 ? fmt::format("1/{}", stride.num)
                         : fmt::format("{}/{}", stride.den, stride.num);
}

double coarseness(const ValueType& type) {
  if (type.num_spatial() == 0) return 1e30;
  const Ratio stride = type.axes[type.first_spatial()].stride;
  return static_cast<double>(stride.num) / static_cast<double>(stride.den);
}

struct Crossing {
  std::string value;
  int from = 0;
  int to = 0;
  int64_t bytes = 0;
  int passed_over() const { return std::abs(to - from) - 1; }
};

std::vector<Crossing> crossings(const Graph& graph, const Plan& plan, at::ScalarType real) {
  const std::vector<int> stages = stages_of_nodes(graph, plan);
  std::vector<Crossing> all;
  for (const Value& value : graph.values()) {
    if (value.producer < 0) continue;
    std::set<int> readers;
    for (const Use& use : value.uses) readers.insert(stages[use.node]);
    const int64_t bytes =
        Box::whole(value.type.shape()).volume() * static_cast<int64_t>(c10::elementSize(real));
    for (int reader : readers)
      if (reader != stages[value.producer])
        all.push_back({value.name, stages[value.producer], reader, bytes});
  }
  std::stable_sort(all.begin(), all.end(), [](const Crossing& a, const Crossing& b) {
    return a.passed_over() != b.passed_over() ? a.passed_over() > b.passed_over()
                                              : a.bytes > b.bytes;
  });
  return all;
}

}  // namespace

std::string draw_stages(const Graph& graph, const Plan& plan, Colours colours, int max_columns) {
  const std::vector<int> stages = stages_of_nodes(graph, plan);
  const int64_t num_nodes = std::ssize(graph.nodes());
  const int64_t columns = std::min<int64_t>(num_nodes, max_columns);
  std::vector<std::pair<double, std::string>> lines;
  for (const Node& node : graph.nodes())
    lines.emplace_back(coarseness(node.types.output), resolution(node.types.output));
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  std::string picture;
  for (const auto& [_, name] : lines) {
    std::string line;
    for (int64_t column = 0; column < columns; ++column) {
      std::string here = " ";
      for (int64_t id = column * num_nodes / columns; id < (column + 1) * num_nodes / columns; ++id)
        if (resolution(graph.nodes()[id].types.output) == name) here = cell(stages[id], colours);
      line += here;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    picture += fmt::format("  {:>8}  {}\n", name, line);
  }
  return picture;
}

std::string describe_crossings(const Graph& graph, const Plan& plan, at::ScalarType real) {
  constexpr size_t kMaxLines = 12;
  const std::vector<Crossing> all = crossings(graph, plan, real);
  int64_t total = 0;
  for (const Crossing& crossing : all) total += crossing.bytes;
  std::string text =
      fmt::format("{} between stages, {} in a forward pass\n",
                  all.size() == 1 ? "1 value crosses" : fmt::format("{} values cross", all.size()),
                  format_bytes(total));
  for (size_t i = 0; i < std::min(all.size(), kMaxLines); ++i) {
    const int over = all[i].passed_over();
    text +=
        fmt::format("  {:<28} stage {} -> {}  {:>12}{}\n", all[i].value, all[i].from, all[i].to,
                    format_bytes(all[i].bytes),
                    over > 0 ? fmt::format("  over {}", counted(over, "stage")) : std::string());
  }
  if (all.size() > kMaxLines) text += fmt::format("  ... and {} more\n", all.size() - kMaxLines);
  return text;
}

std::string describe_domains(const Graph& graph, const Plan& plan) {
  const size_t num_domains = image_inputs(graph).size();
  if (num_domains < 2) return {};
  const std::vector<int> stages = stages_of_nodes(graph, plan), domains = domains_of_nodes(graph);
  std::vector<std::set<int>> of_domain(num_domains);
  for (size_t node = 0; node < stages.size(); ++node)
    if (domains[node] >= 0) of_domain[domains[node]].insert(stages[node]);
  std::string text;
  for (size_t domain = 0; domain < num_domains; ++domain)
    text += fmt::format("\n  {:<10} {} {}", domain_name(static_cast<int>(domain)),
                        of_domain[domain].size() == 1 ? "stage" : "stages",
                        fmt::join(of_domain[domain], ", "));
  return "\ndomains, and where they run" + text + "\n";
}

}  // namespace tessera::cli

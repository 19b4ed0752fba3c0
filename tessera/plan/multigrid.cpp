#include "tessera/plan/multigrid.h"

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/key_values.h"

namespace tessera {
namespace {

constexpr int64_t kMostLevels = 16;
constexpr int64_t kMostCoarsening = 1 << 16;
constexpr int64_t kMostIterations = 1 << 16;
constexpr int64_t kMostRelaxations = 16;

const std::vector<KeyInfo>& keys() {
  static const std::vector<KeyInfo> all{{"levels", "2"},      {"coarsening", "4"}, {"forward", "2"},
                                        {"backward", "1"},    {"relax", "FCF"},    {"skip", "no"},
                                        {"measure", "states"}};
  return all;
}

std::string relaxation_name(int64_t relaxations) {
  std::string name = "F";
  for (int64_t i = 0; i < relaxations; ++i) name += "CF";
  return name;
}

int64_t parse_relaxation(const std::string& text) {
  for (int64_t count = 0; count <= kMostRelaxations; ++count)
    if (text == relaxation_name(count) || (count > 0 && text + "F" == relaxation_name(count)))
      return count;
  throw_error<InvalidInput>(
      "[--multigrid] relax={} is not a relaxation; use F, FCF, or FCFCF and so on, with at most {} "
      "C",
      text, kMostRelaxations);
}

}  // namespace

Multigrid parse_multigrid(const std::string& text) {
  const KeyValues values("--multigrid", text, keys());
  Multigrid multigrid;
  multigrid.levels = values.integer("levels", 1, kMostLevels);
  multigrid.coarsening = values.integer("coarsening", 2, kMostCoarsening);
  multigrid.forward = values.integer("forward", 1, kMostIterations);
  multigrid.backward = values.integer("backward", 1, kMostIterations);
  multigrid.relaxations = parse_relaxation(values.text("relax"));
  multigrid.skip = values.choice("skip", {"yes", "no"}) == "yes";
  multigrid.measure_gradients = values.choice("measure", {"states", "both"}) == "both";
  return multigrid;
}

std::string to_string(const Multigrid& multigrid) {
  return fmt::format("levels={},coarsening={},forward={},backward={},relax={},skip={}{}",
                     multigrid.levels, multigrid.coarsening, multigrid.forward, multigrid.backward,
                     relaxation_name(multigrid.relaxations), multigrid.skip ? "yes" : "no",
                     multigrid.measure_gradients ? ",measure=both" : "");
}

int64_t exact_iterations(const Multigrid& multigrid, int64_t num_layers) {
  const auto rounded_up = [](int64_t count, int64_t by) { return (count + by - 1) / by; };
  if (multigrid.levels == 1) return 1;
  const int64_t intervals = rounded_up(num_layers, multigrid.coarsening);
  return rounded_up(intervals - 1, multigrid.relaxations + 1) + (multigrid.skip ? 1 : 0);
}

}  // namespace tessera

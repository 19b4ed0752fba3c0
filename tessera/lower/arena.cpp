#include "tessera/lower/arena.h"

#include <algorithm>
#include <map>

#include "tessera/base/random.h"

namespace tessera {
namespace {

/// So many buffers are placed with care; the others are small, and together they are little.
constexpr size_t kMostLarge = 16384;

struct Tenant {
  BufferId buffer = -1;
  int64_t bytes = 0;       // whole alignments
  int begin = 0, end = 0;  // instructions
  int64_t offset = 0;
  int64_t limit() const { return offset + bytes; }
  bool meets(const Tenant& other) const { return begin < other.end && other.begin < end; }
};

std::vector<Tenant> tenants_of(const Program& program, at::ScalarType real) {
  std::vector<Tenant> tenants;
  std::vector<int> place(program.buffers.size(), -1);
  const int count = static_cast<int>(program.instructions.size());
  for (int index = 0; index < count; ++index) {
    if (const auto* alloc = std::get_if<Alloc>(&program.instructions[index])) {
      const int64_t bytes = buffer_bytes(program.buffers[alloc->buffer], real);
      const int64_t rounded =
          (bytes + ArenaLayout::kAlignment - 1) / ArenaLayout::kAlignment * ArenaLayout::kAlignment;
      place[alloc->buffer] = static_cast<int>(tenants.size());
      tenants.push_back({alloc->buffer, rounded, index, count});
    } else if (const auto* free = std::get_if<Free>(&program.instructions[index])) {
      tenants[place[free->buffer]].end = index;
    }
  }
  return tenants;
}

struct Peak {
  int64_t bytes = 0;  // the most that lives at once
  int at = 0;         // the first instruction at which it does
};

/// Tenants are in the order of their begin.
Peak peak_of(const std::vector<Tenant>& tenants) {
  std::multimap<int, int64_t> leaving;
  int64_t live = 0;
  Peak peak;
  for (const Tenant& tenant : tenants) {
    for (; !leaving.empty() && leaving.begin()->first <= tenant.begin;
         leaving.erase(leaving.begin()))
      live -= leaving.begin()->second;
    live += tenant.bytes;
    leaving.emplace(tenant.end, tenant.bytes);
    if (live > peak.bytes) peak = {live, tenant.begin};
  }
  return peak;
}

bool is_good(int64_t bytes, const Peak& peak) {
  constexpr double kGoodEnough = 1.005;
  return static_cast<double>(bytes) <= kGoodEnough * static_cast<double>(peak.bytes);
}

/// Gives each tenant, in the order of the list, the smallest gap that it fits into among those who
/// live at the same time. Returns where the last one ends.
int64_t settle_in_order(std::vector<Tenant>& tenants) {
  std::vector<const Tenant*> settled;  // by offset
  settled.reserve(tenants.size());
  int64_t bytes = 0;
  for (Tenant& tenant : tenants) {
    int64_t gap_begin = 0, best = -1, best_size = 0;
    for (const Tenant* other : settled) {
      if (!other->meets(tenant)) continue;
      const int64_t size = other->offset - gap_begin;
      if (size >= tenant.bytes && (best < 0 || size < best_size)) {
        best = gap_begin;
        best_size = size;
      }
      gap_begin = std::max(gap_begin, other->limit());
    }
    tenant.offset = best >= 0 ? best : gap_begin;
    bytes = std::max(bytes, tenant.limit());
    settled.insert(std::ranges::upper_bound(settled, tenant.offset, {},
                                            [](auto* each) { return each->offset; }),
                   &tenant);
  }
  return bytes;
}

/// Looks for an order in which the gaps are small. No rule is best for all networks, so a few are
/// tried; then the tenant at the top is taken earlier, again and again, while that helps.
void settle_large(std::vector<Tenant>& tenants, const Peak& peak) {
  constexpr int64_t kMostSteps = 20'000'000;
  const auto count = static_cast<int64_t>(tenants.size());
  std::vector<Tenant> best = tenants;
  int64_t bytes = settle_in_order(best);
  const auto good = [&] { return is_good(bytes, peak); };
  const auto consider = [&](std::vector<Tenant> order) {
    const int64_t found = settle_in_order(order);
    if (found > bytes) return;
    bytes = found;
    best = std::move(order);
  };
  const auto at_peak = [&](const Tenant& each) {
    return each.begin <= peak.at && peak.at < each.end;
  };
  const auto by = [&](auto key) {
    std::vector<Tenant> order = tenants;
    std::ranges::stable_sort(order, std::greater<>(), key);
    return order;
  };
  using Key = std::pair<bool, int64_t>;
  const auto length = [](const Tenant& each) { return int64_t{each.end} - each.begin; };
  if (!good()) consider(by([&](const Tenant& each) { return Key(true, each.bytes); }));
  if (!good())
    consider(by([&](const Tenant& each) {
      return at_peak(each) ? Key(true, length(each)) : Key(false, each.bytes);
    }));
  if (!good())
    consider(by([&](const Tenant& each) {
      return at_peak(each) ? Key(true, -each.begin) : Key(false, each.bytes);
    }));
  if (!good()) consider(by([&](const Tenant& each) { return Key(true, length(each)); }));
  RandomKey key(0);
  const int64_t rounds = kMostSteps / std::max<int64_t>(count * count, 1);
  for (int64_t round = 0; round < rounds && !good(); ++round) {
    std::vector<Tenant> order = best;
    const auto draw = [&](int64_t index, int64_t below) {
      return static_cast<int64_t>(key.bits(3 * round + index) % static_cast<uint64_t>(below));
    };
    int64_t place = std::ranges::max_element(order, {}, &Tenant::limit) - order.begin();
    const int64_t every = round < rounds / 2 ? 4 : 2;  // at last any of them more often
    if (place == 0 || round % every == 1) place = draw(0, count);
    std::rotate(order.begin() + draw(1, place + 1), order.begin() + place,
                order.begin() + place + 1);
    consider(std::move(order));
  }
  tenants = std::move(best);
}

/// The few that are a large part of the peak decide, and few are quickly put in order. The others
/// fill what they leave, the largest first; where that is not good, more of them take part.
int64_t settle_by_size(std::vector<Tenant>& tenants, const Peak& peak) {
  std::vector<Tenant> best;
  int64_t bytes = 0;
  for (const int64_t parts_of_peak : {20, 100, 1000}) {
    std::vector<Tenant> order = tenants;
    const auto rest = std::ranges::stable_partition(
        order, [&](const Tenant& each) { return each.bytes >= peak.bytes / parts_of_peak; });
    std::ranges::stable_sort(rest, std::greater<>(), &Tenant::bytes);
    std::vector<Tenant> large(order.begin(), rest.begin());
    settle_large(large, peak_of(large));
    std::ranges::copy(large, order.begin());
    const int64_t found = settle_in_order(order);
    if (!best.empty() && found >= bytes) continue;
    bytes = found;
    best = std::move(order);
    if (is_good(bytes, peak)) break;
  }
  tenants = std::move(best);
  return bytes;
}

/// One after the other in time, from free places of the same size where there are some. Quick, and
/// good enough for small ones.
int64_t settle_by_time(std::vector<Tenant>& tenants, int64_t first) {
  std::map<int64_t, std::vector<int64_t>> vacant;  // offsets by size
  std::multimap<int, const Tenant*> leaving;
  int64_t bytes = first;
  for (Tenant& tenant : tenants) {
    for (; !leaving.empty() && leaving.begin()->first <= tenant.begin;
         leaving.erase(leaving.begin())) {
      const Tenant& gone = *leaving.begin()->second;
      vacant[gone.bytes].push_back(gone.offset);
    }
    std::vector<int64_t>& places = vacant[tenant.bytes];
    if (places.empty()) {
      tenant.offset = bytes;
      bytes += tenant.bytes;
    } else {
      tenant.offset = places.back();
      places.pop_back();
    }
    leaving.emplace(tenant.end, &tenant);
  }
  return bytes;
}

/// The size of those that are not among the kMostLarge largest.
int64_t largest_small(const std::vector<Tenant>& tenants) {
  constexpr int64_t kAlwaysSmall = 1024;
  std::vector<int64_t> sizes;
  for (const Tenant& tenant : tenants) sizes.push_back(tenant.bytes);
  if (sizes.size() <= kMostLarge) return kAlwaysSmall;
  std::ranges::nth_element(sizes, sizes.begin() + kMostLarge, std::greater<>());
  return std::max(kAlwaysSmall, sizes[kMostLarge]);
}

}  // namespace

ArenaLayout lay_out(const Program& program, at::ScalarType real) {
  std::vector<Tenant> all = tenants_of(program, real);
  const Peak peak = peak_of(all);
  const int64_t limit = largest_small(all);
  std::vector<Tenant> large;
  std::erase_if(all, [&](const Tenant& tenant) {
    if (tenant.bytes <= limit) return false;
    large.push_back(tenant);
    return true;
  });
  ArenaLayout layout;
  layout.offsets.assign(program.buffers.size(), -1);
  layout.bytes = settle_by_time(all, settle_by_size(large, peak));
  for (const auto* tenants : {&large, &all})
    for (const Tenant& tenant : *tenants) layout.offsets[tenant.buffer] = tenant.offset;
  return layout;
}

}  // namespace tessera

// A rank that fails or stalls in any round of a collective: all members end and name it.

#include "tessera/comm/collectives.h"

#include <functional>
#include <optional>

#include "tessera/comm/decorators.h"
#include "tests/fault/comm/outcome.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::collective_test {
namespace {

class CollectiveFault : public WatchedTest {};

constexpr int kSize = 5;
constexpr int kRounds = 3;  // ceil(log2 5)
constexpr int kCulprit = 1;
const Members kAll = {0, 1, 2, 3, 4};

void sum(Transport& transport) {
  std::vector<double> data(5000, 1.0);
  AllReduce(transport, kAll, data.data(), 5000, SumType::kFloat64).finish();
}

void gather(Transport& transport) {
  std::vector<char> data(kSize * 3000);
  AllGather(transport, kAll, std::vector<int64_t>(kSize, 3000), data.data()).finish();
}

/// From the culprit, which has to send in every round.
void spread(Transport& transport) {
  std::vector<char> data(3000);
  broadcast(transport, kAll, kCulprit, data.data(), 3000);
}

/// The culprit's transport breaks after `good_rounds` of them.
Outcome break_in_round(int good_rounds, Failure failure, const threads::Options& options,
                       const std::function<void(Transport&)>& collective) {
  World world = threads::create(kSize, options);
  world[kCulprit] = failing(std::move(world[kCulprit]), good_rounds, failure);
  return outcome_of(world, [&](Transport& transport) {
    collective(transport);
    barrier(transport, kAll);  // some are done before the broken round
  });
}

struct Case {
  std::function<void(Transport&)> collective;
  int rounds;
};
const std::vector<Case> kCases = {{sum, 2 * kRounds}, {gather, kRounds}, {spread, kRounds}};

TEST_F(CollectiveFault, ARankThatFailsInAnyRoundIsNamed) {
  const threads::Options kLong{std::chrono::minutes(10)};
  for (const Case& one : kCases)
    for (int round = 0; round < one.rounds; ++round) {
      const Outcome outcome = break_in_round(round, Failure::kThrow, kLong, one.collective);
      const std::string reason = fmt::format("made to fail after {} batches", round);
      expect_all_others_say(outcome, kCulprit, "rank 1 failed: " + reason);
      EXPECT_EQ(outcome.rethrown, "[failing] rank 1/5: " + reason);
    }
}

TEST_F(CollectiveFault, ARankThatStallsInAnyRoundIsNamed) {
  const threads::Options kShort{std::chrono::milliseconds(300)};
  for (const Case& one : kCases)
    for (int round = 0; round < one.rounds; ++round) {
      const Outcome outcome = break_in_round(round, Failure::kStall, kShort, one.collective);
      expect_all_others_say(outcome, kCulprit, "the waits end at rank 1,");
    }
}

// The memory of a gather goes while its first round is under way; that of a sum has scratch, too.
TEST_F(CollectiveFault, AnExceptionBetweenStartAndFinishEndsAll) {
  const auto throw_between = [](Transport& transport, const char* left_unfinished) {
    std::vector<char> data(kSize * 300'000);
    std::vector<char> summed(800'000);
    const bool gathers = left_unfinished == std::string("an all-gather");
    std::optional<AllGather> gather;
    std::optional<AllReduce> sum;
    if (gathers)
      gather.emplace(transport, kAll, std::vector<int64_t>(kSize, 300'000), data.data());
    else
      sum.emplace(transport, kAll, summed.data(), 100'000, SumType::kFloat64);
    if (transport.rank() == kCulprit) throw InvalidInput("[op] thrown between");
    gathers ? gather->finish() : sum->finish();
    barrier(transport, kAll);
  };
  for (const char* left_unfinished : {"an all-gather", "an all-reduce"}) {
    const Outcome outcome = outcome_of(
        kSize, {}, [&](Transport& transport) { throw_between(transport, left_unfinished); });
    expect_all_others_say(outcome, kCulprit,
                          fmt::format("rank 1 failed: {} was left unfinished", left_unfinished));
    EXPECT_EQ(outcome.rethrown, "[op] rank 1/5: thrown between");
  }
}

}  // namespace
}  // namespace tessera::collective_test

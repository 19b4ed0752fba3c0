// The rounds of collectives, played by all members together in plain integers: everything arrives
// where it should, once, and takes as many rounds, messages and elements as promised.

#include "tessera/base/collective_rounds.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <random>

namespace tessera::collective_rounds_test {
namespace {

constexpr int kMostMembers = 40;

/// Per member its rounds.
using AllRounds = std::vector<std::vector<CollectiveRound>>;
/// Per member its elements. In a sum, each is the set of the members whose terms it holds;
/// otherwise its place in the whole, counted from 1; 0: nothing yet.
using Buffers = std::vector<std::vector<uint64_t>>;

AllRounds rounds_of_all(int members,
                        const std::function<std::vector<CollectiveRound>(int)>& rounds_of) {
  AllRounds all;
  for (int own = 0; own < members; ++own) all.push_back(rounds_of(own));
  return all;
}

int64_t rounded_log2(int members) {
  return std::bit_width(static_cast<unsigned>(members) - 1);  // ceil(log2 members)
}

int64_t num_elements(const std::vector<MemberMessage>& messages) {
  int64_t count = 0;
  for (const MemberMessage& message : messages) count += message.elements.count;
  return count;
}

/// The messages of one round by pair (from, to), in order.
using Pairs = std::map<std::pair<int, int>, std::vector<Elements>>;

/// Everything that is sent is received in the same round, pair by pair in the same order.
void expect_matched(const AllRounds& all, size_t round) {
  Pairs sent, received;
  for (int own = 0; own < std::ssize(all); ++own) {
    for (const auto& [member, elements] : all[own][round].sends)
      sent[{own, member}].push_back(elements);
    for (const auto& [member, elements] : all[own][round].receives)
      received[{member, own}].push_back(elements);
  }
  ASSERT_EQ(sent.size(), received.size());
  for (const auto& [pair, messages] : sent) {
    ASSERT_NE(pair.first, pair.second);
    ASSERT_EQ(messages.size(), received[pair].size());
    for (size_t i = 0; i < messages.size(); ++i) {
      ASSERT_GT(messages[i].count, 0);
      ASSERT_EQ(messages[i].begin, received[pair][i].begin);
      ASSERT_EQ(messages[i].count, received[pair][i].count);
    }
  }
}

/// All members at once: what is sent is what lay there before the round.
void play_round(const AllRounds& all, size_t round, Buffers* buffers) {
  const Buffers before = *buffers;
  for (int own = 0; own < std::ssize(all); ++own)
    for (const auto& [member, elements] : all[own][round].receives)
      for (int64_t i = elements.begin; i < elements.begin + elements.count; ++i) {
        uint64_t& target = (*buffers)[own][i];
        const uint64_t arrived = before[member][i];
        ASSERT_NE(arrived, 0) << "member " << member << " sends what it does not have";
        const uint64_t added = all[own][round].adds ? target : 0;
        ASSERT_EQ(added & arrived, 0) << "a term of element " << i << " is added twice";
        target = added | arrived;
      }
}

void play(const AllRounds& all, int64_t num_rounds, Buffers* buffers) {
  for (const auto& rounds : all) ASSERT_EQ(std::ssize(rounds), num_rounds);
  for (int64_t round = 0; round < num_rounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(expect_matched(all, round));
    ASSERT_NO_FATAL_FAILURE(play_round(all, round, buffers));
  }
}

struct Totals {
  int64_t elements_of_all = 0;
  int64_t most_messages = 0;  // of one member
};

Totals totals_of(const AllRounds& all) {
  Totals totals;
  for (const auto& rounds : all) {
    int64_t messages = 0;
    for (const CollectiveRound& round : rounds) {
      messages += std::ssize(round.sends);
      totals.elements_of_all += num_elements(round.sends);
    }
    totals.most_messages = std::max(totals.most_messages, messages);
  }
  return totals;
}

void expect_reduced(int members, int64_t count) {
  SCOPED_TRACE(testing::Message() << members << " members, " << count << " elements");
  const AllRounds all =
      rounds_of_all(members, [&](int own) { return reduce_rounds(members, own, count); });
  Buffers buffers;
  for (int own = 0; own < members; ++own) buffers.emplace_back(count, uint64_t{1} << own);
  const int64_t log2 = rounded_log2(members);
  ASSERT_NO_FATAL_FAILURE(play(all, 2 * log2, &buffers));
  const uint64_t everyone = (uint64_t{1} << members) - 1;
  for (const auto& buffer : buffers)
    for (uint64_t terms : buffer) ASSERT_EQ(terms, everyone);
  const Totals totals = totals_of(all);
  EXPECT_EQ(totals.elements_of_all, 2 * count * (members - 1));
  EXPECT_LE(totals.most_messages, 4 * log2);
  for (int own = 0; own < members; ++own) {
    int64_t most_terms = 0;
    for (const CollectiveRound& round : all[own])
      most_terms = std::max(most_terms, round.adds ? num_elements(round.receives) : 0);
    EXPECT_EQ(reduce_scratch(members, own, count), most_terms);
    EXPECT_LE(most_terms, count / 2 + (members + 1) / 2) << "about half of the elements";
  }
}

TEST(CollectiveRounds, AReductionAddsEveryTermOnce) {
  for (int members = 1; members <= kMostMembers; ++members) {
    for (int64_t count : {0, 1, 2, 3, 5, 17, 39, 40, 41, 100, 257}) expect_reduced(members, count);
    expect_reduced(members, members - 1);
    expect_reduced(members, 3 * members);
  }
}

TEST(CollectiveRounds, OneElementIsSummedUpATreeAndComesDownAgain) {
  for (int members = 2; members <= kMostMembers; ++members)
    for (int own = 0; own < members; ++own) {
      int64_t sends_of_terms = 0, receives_of_sums = 0;
      for (const CollectiveRound& round : reduce_rounds(members, own, 1)) {
        if (round.adds) sends_of_terms += std::ssize(round.sends);
        if (!round.adds) receives_of_sums += std::ssize(round.receives);
      }
      EXPECT_EQ(sends_of_terms, own == 0 ? 0 : 1);
      EXPECT_EQ(receives_of_sums, own == 0 ? 0 : 1);
    }
}

void expect_gathered(const std::vector<int64_t>& counts) {
  const int members = static_cast<int>(counts.size());
  SCOPED_TRACE(testing::Message() << members << " members");
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  std::vector<uint64_t> expected;
  Buffers buffers(members, std::vector<uint64_t>(total, 0));
  for (int own = 0; own < members; ++own)
    for (int64_t i = 0; i < counts[own]; ++i) {
      buffers[own][expected.size()] = expected.size() + 1;
      expected.push_back(expected.size() + 1);
    }
  const AllRounds all = rounds_of_all(members, [&](int own) { return gather_rounds(own, counts); });
  const int64_t log2 = rounded_log2(members);
  ASSERT_NO_FATAL_FAILURE(play(all, log2, &buffers));
  for (int own = 0; own < members; ++own) {
    EXPECT_EQ(buffers[own], expected);
    int64_t received = 0;
    for (const CollectiveRound& round : all[own]) {
      EXPECT_FALSE(round.adds);
      received += num_elements(round.receives);
    }
    EXPECT_EQ(received, total - counts[own]) << "every block of another once, one's own never";
  }
  EXPECT_EQ(totals_of(all).elements_of_all, total * (members - 1));
  EXPECT_LE(totals_of(all).most_messages, 2 * log2);
}

TEST(CollectiveRounds, AGatherBringsBlocksOfAnySize) {
  std::mt19937 random(3);
  for (int members = 1; members <= kMostMembers; ++members) {
    expect_gathered(std::vector<int64_t>(members, 1));
    for (int round = 0; round < 5; ++round) {
      std::vector<int64_t> counts;
      for (int own = 0; own < members; ++own)
        counts.push_back(random() % 3 ? static_cast<int64_t>(random() % 20) : 0);
      expect_gathered(counts);
    }
    std::vector<int64_t> single(members, 0);
    single[members / 2] = 7;
    expect_gathered(single);
  }
}

TEST(CollectiveRounds, ABroadcastReachesEveryoneOnce) {
  for (int members = 1; members <= kMostMembers; ++members)
    for (int root = 0; root < members; ++root)
      for (int64_t count : {0, 1, 6}) {
        SCOPED_TRACE(testing::Message() << members << " members, root " << root);
        const AllRounds all = rounds_of_all(
            members, [&](int own) { return broadcast_rounds(members, own, root, count); });
        Buffers buffers(members, std::vector<uint64_t>(count, 0));
        std::iota(buffers[root].begin(), buffers[root].end(), 1);
        const auto expected = buffers[root];
        ASSERT_NO_FATAL_FAILURE(play(all, rounded_log2(members), &buffers));
        for (const auto& buffer : buffers) EXPECT_EQ(buffer, expected);
        EXPECT_EQ(totals_of(all).elements_of_all, count * (members - 1));
        EXPECT_LE(totals_of(all).most_messages, rounded_log2(members));
      }
}

}  // namespace
}  // namespace tessera::collective_rounds_test

#include "tessera/lower/checker.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "tessera/base/error.h"
#include "tessera/lower/posts.h"

namespace tessera {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

/// Whether a kernel writes an argument of this role.
bool is_written(Phase phase, Role role) {
  switch (phase) {
    case Phase::kForward:
    case Phase::kRecompute:
      return role == Role::kOutput || role == Role::kSaved || role == Role::kLoss;
    case Phase::kPieceStatistics:
      return role == Role::kPieceStatistics;
    case Phase::kMergeStatistics:
      return role == Role::kMergedStatistics;
    case Phase::kPieceGradStatistics:
      return role == Role::kPieceGradStatistics;
    case Phase::kMergeGradStatistics:
      return role == Role::kMergedGradStatistics;
    case Phase::kInputGradient:
      return role == Role::kGradInput;
    case Phase::kUpdateBuffers:
    case Phase::kWeightGradient:
      return false;
  }
  return false;
}

/// Liveness and views of one program, and transfers whose memory nobody disturbs.
class BufferCheck {
 public:
  explicit BufferCheck(const Program& program) : program_(program), alive_(program.buffers.size()) {
    for (size_t b = 0; b < alive_.size(); ++b)
      alive_[b] = program.buffers[b].kind == BufferKind::kBucket;
  }

  void run() {
    for (; at_ < program_.instructions.size(); ++at_) visit(program_.instructions[at_]);
    std::set<BufferId> expected;
    if (program_.loss >= 0) expected.insert(program_.loss);
    for (const auto* results : {&program_.outputs, &program_.input_gradients})
      for (const Result& result : *results) {
        view(result.view);
        expected.insert(result.view.buffer);
      }
    for (size_t b = 0; b < alive_.size(); ++b)
      if (program_.buffers[b].kind != BufferKind::kBucket)
        require(alive_[b] == expected.contains(static_cast<BufferId>(b)), "left over at the end",
                b);
    TESSERA_CHECK(open_.empty(), "rank {}: channel {} is never finished", program_.rank,
                  *open_.begin());
  }

 private:
  void require(bool condition, const char* what, size_t buffer) const {
    TESSERA_CHECK(condition, "rank {} instruction {}: buffer {} ({}) {}", program_.rank, at_,
                  buffer, program_.buffers[buffer].name, what);
  }
  enum class Touch { kRead, kWrite };
  void view(const View& view, Touch touch = Touch::kRead) const {
    if (view.buffer < 0) {
      TESSERA_CHECK(view.box.empty(), "rank {} instruction {}: a view of no buffer", program_.rank,
                    at_);
      return;
    }
    require(alive_[view.buffer], "is not alive", view.buffer);
    require(program_.buffers[view.buffer].box.contains(view.box), "does not hold a view of it",
            view.buffer);
    require(!receiving_.contains(view.buffer), "is used while it is being received", view.buffer);
    require(touch == Touch::kRead || !sending_.contains(view.buffer),
            "is written while it is being sent", view.buffer);
  }
  void open(const StartTransfer& transfer) {
    for (const Message& message : transfer.sends) sending_.insert(message.strip);
    for (const Message& message : transfer.receives) receiving_.insert(message.strip);
    strips_[transfer.channel] = {&transfer.sends, &transfer.receives};
  }
  void close(int channel) {
    for (const Message& message : *strips_.at(channel).first)
      sending_.erase(sending_.find(message.strip));
    for (const Message& message : *strips_.at(channel).second) receiving_.erase(message.strip);
    strips_.erase(channel);
  }
  void messages(const std::vector<Message>& list) const {
    for (const Message& message : list)
      for (const Segment& segment : message.segments) {
        require(alive_[message.strip], "is not alive", message.strip);
        require(segment.offset + segment.view.box.volume() <=
                    program_.buffers[message.strip].box.volume(),
                "is too short for its segments", message.strip);
      }
  }
  void start(int channel) {
    TESSERA_CHECK(open_.insert(channel).second, "rank {}: channel {} starts twice", program_.rank,
                  channel);
  }
  void finish(int channel) {
    TESSERA_CHECK(open_.erase(channel) == 1, "rank {}: channel {} finishes before it starts",
                  program_.rank, channel);
  }
  void visit(const Instruction& instruction) {
    std::visit(Overloaded{
                   [&](const Alloc& alloc) {
                     require(!alive_[alloc.buffer], "is allocated twice", alloc.buffer);
                     alive_[alloc.buffer] = true;
                   },
                   [&](const Free& free) {
                     require(alive_[free.buffer], "is freed twice", free.buffer);
                     require(!sending_.contains(free.buffer) && !receiving_.contains(free.buffer),
                             "is freed in the middle of a transfer", free.buffer);
                     alive_[free.buffer] = false;
                   },
                   [&](const Fill& fill) {
                     for (const Box& box : fill.boxes) view({fill.buffer, box}, Touch::kWrite);
                   },
                   [&](const Copy& copy) {
                     view(copy.from);
                     view(copy.to, Touch::kWrite);
                   },
                   [&](const Load& load) { view(load.to, Touch::kWrite); },
                   [&](const Run& run) {
                     for (const Argument& argument : run.arguments)
                       view(argument.view,
                            is_written(run.phase, argument.role) ? Touch::kWrite : Touch::kRead);
                   },
                   [&](const StartTransfer& transfer) {
                     start(transfer.channel);
                     messages(transfer.sends);
                     messages(transfer.receives);
                     for (const Message& message : transfer.sends)
                       for (const Segment& segment : message.segments) view(segment.view);
                     open(transfer);
                   },
                   [&](const FinishTransfer& transfer) {
                     finish(transfer.channel);
                     close(transfer.channel);
                     for (BufferId strip : transfer.strips)
                       require(alive_[strip], "is not alive", strip);
                   },
                   [&](const Unpack& unpack) {
                     messages(unpack.messages);
                     for (const Message& message : unpack.messages)
                       for (const Segment& segment : message.segments)
                         view(segment.view, Touch::kWrite);
                   },
                   [&](const StartReduce& reduce) {
                     start(reduce.channel);
                     require(alive_[reduce.buffer], "is not alive", reduce.buffer);
                   },
                   [&](const FinishReduce& reduce) { finish(reduce.channel); },
                   [&](const StartGather& gather) {
                     start(gather.channel);
                     require(alive_[gather.buffer], "is not alive", gather.buffer);
                   },
                   [&](const FinishGather& gather) { finish(gather.channel); },
                   [&](const Update&) {},
                   [&](const Enter&) {},
               },
               instruction);
  }

  const Program& program_;
  std::vector<bool> alive_;
  std::set<int> open_;
  std::multiset<BufferId> sending_;  // one may go to several ranks
  std::set<BufferId> receiving_;
  /// Sends and receives of open channels.
  std::map<int, std::pair<const std::vector<Message>*, const std::vector<Message>*>> strips_;
  size_t at_ = 0;
};

/// One message of a pair as both ends describe it; equal descriptions match.
struct Described {
  int channel = 0;
  int round = 0;  // an all-reduce posts again in its Finish
  int64_t bytes = 0;
  bool operator==(const Described&) const = default;
};

/// What a rank posts at one instruction, for which channel, and whether it then waits for it.
struct Events {
  Posts posts;
  int channel = -1;  // none: no communication
  bool waits = false;
};

/// With the sizes of float64; the messages do not depend on the element type.
Events events_of(const Instruction& instruction, const Program& program) {
  return std::visit(
      [&]<class T>(const T& each) {
        Events events{posts_of(each, program, at::kDouble)};
        if constexpr (requires { each.channel; }) {
          events.channel = each.channel;
          events.waits = std::is_same_v<T, FinishTransfer> || std::is_same_v<T, FinishReduce> ||
                         std::is_same_v<T, FinishGather>;
        }
        return events;
      },
      instruction);
}

/// Runs the communication of all programs with rendezvous semantics and no data.
class CommunicationCheck {
 public:
  explicit CommunicationCheck(const std::vector<Program>& programs)
      : programs_(programs), at_(programs.size(), 0), open_(programs.size()) {}

  void run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t rank = 0; rank < programs_.size(); ++rank)
        while (advance(static_cast<int>(rank))) moved = true;
    }
    for (size_t rank = 0; rank < programs_.size(); ++rank)
      TESSERA_CHECK(at_[rank] == programs_[rank].instructions.size(),
                    "rank {} waits for ever at instruction {}", rank, at_[rank]);
    for (const auto& [pair, queue] : sent_)
      TESSERA_CHECK(queue.empty(), "rank {} sends channel {} to rank {}, which never receives it",
                    pair.first, queue.front().channel, pair.second);
    for (const auto& [pair, queue] : expected_)
      TESSERA_CHECK(queue.empty(), "rank {} waits for channel {} of rank {}, which never sends it",
                    pair.second, queue.front().channel, pair.first);
  }

 private:
  using Pair = std::pair<int, int>;  // from, to

  /// Executes the rank's next instruction if it need not wait.
  bool advance(int rank) {
    const Program& program = programs_[rank];
    if (at_[rank] == program.instructions.size()) return false;
    const Events events = events_of(program.instructions[at_[rank]], program);
    if (!posted_[{rank, at_[rank]}]) {
      post(rank, events);
      posted_[{rank, at_[rank]}] = true;
    }
    if (events.waits && open_[rank][events.channel] > 0) return false;
    posted_.erase({rank, at_[rank]});
    ++at_[rank];
    return true;
  }

  void post(int rank, const Events& events) {
    const int round = events.waits ? 1 : 0;
    for (const Post& send : events.posts.sends) {
      ++open_[rank][events.channel];
      match({rank, send.peer}, {events.channel, round, send.bytes}, &sent_, &expected_);
    }
    for (const Post& receive : events.posts.receives) {
      ++open_[rank][events.channel];
      match({receive.peer, rank}, {events.channel, round, receive.bytes}, &expected_, &sent_);
    }
  }

  using Queues = std::map<Pair, std::deque<Described>>;
  void match(Pair pair, const Described& post, Queues* own, Queues* other) {
    std::deque<Described>& waiting = (*other)[pair];
    if (waiting.empty()) {
      (*own)[pair].push_back(post);
      return;
    }
    const Described& partner = waiting.front();
    TESSERA_CHECK(partner == post,
                  "messages from rank {} to rank {} cross: channel {} round {} ({} bytes) meets "
                  "channel {} round {} ({} bytes)",
                  pair.first, pair.second, post.channel, post.round, post.bytes, partner.channel,
                  partner.round, partner.bytes);
    waiting.pop_front();
    --open_[pair.first][post.channel];
    --open_[pair.second][post.channel];
  }

  const std::vector<Program>& programs_;
  std::vector<size_t> at_;
  std::vector<std::map<int, int>> open_;  // per rank: unmatched messages of a channel
  std::map<std::pair<int, size_t>, bool> posted_;
  Queues sent_;
  Queues expected_;
};

}  // namespace

void check_programs(const std::vector<Program>& programs) {
  for (const Program& program : programs) BufferCheck(program).run();
  CommunicationCheck(programs).run();
}

}  // namespace tessera

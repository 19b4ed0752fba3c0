#include "tessera/lower/checker.h"

#include <map>
#include <set>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Walks one program and keeps track of what is alive and what is under way.
class BufferCheck {
 public:
  explicit BufferCheck(const Program& program) : program_(program) {
    for (const Buffer& buffer : program.buffers) alive_.push_back(is_permanent(buffer.kind));
  }

  void run() {
    for (; at_ < program_.instructions.size(); ++at_)
      std::visit([this](const auto& each) { visit(each); }, program_.instructions[at_]);
    TESSERA_CHECK(open_.empty(), "rank {}: channel {} is never finished", program_.rank,
                  *open_.begin());
    for (const auto* results : {&program_.outputs, &program_.input_gradients})
      for (const Result& result : *results) read(result.view);
    std::set<BufferId> expected;
    for (BufferId buffer : kept_buffers(program_)) expected.insert(buffer);
    for (size_t b = 0; b < alive_.size(); ++b)
      if (!is_permanent(program_.buffers[b].kind))
        require(alive_[b] == expected.contains(static_cast<BufferId>(b)), "left over at the end",
                static_cast<BufferId>(b));
  }

 private:
  void require(bool condition, const char* what, BufferId buffer) const {
    TESSERA_CHECK(condition, "rank {} instruction {}: buffer {} ({}) {}", program_.rank, at_,
                  buffer, program_.buffers[buffer].name, what);
  }

  void read(const View& view) const {
    if (view.buffer < 0) {
      TESSERA_CHECK(view.box.empty(), "rank {} instruction {}: a view of no buffer", program_.rank,
                    at_);
      return;
    }
    require(alive_[view.buffer], "is not alive", view.buffer);
    require(program_.buffers[view.buffer].box.contains(view.box), "does not hold a view of it",
            view.buffer);
    require(!receiving_.contains(view.buffer), "is used while it is being received", view.buffer);
    require(!reducing_.contains(view.buffer), "is used while it is being reduced", view.buffer);
  }
  void write(const View& view) const {
    read(view);
    if (view.buffer >= 0)
      require(!sending_.contains(view.buffer), "is written while it is being sent", view.buffer);
  }
  void read(BufferId buffer) const { read(View{buffer, program_.buffers[buffer].box}); }
  void write(BufferId buffer) const { write(View{buffer, program_.buffers[buffer].box}); }
  void write(const std::vector<BufferId>& buffers) const {
    for (BufferId buffer : buffers) write(buffer);
  }

  void start(int channel) {
    TESSERA_CHECK(open_.insert(channel).second, "rank {}: channel {} starts twice", program_.rank,
                  channel);
  }
  void finish(int channel) {
    TESSERA_CHECK(open_.erase(channel) == 1, "rank {}: channel {} finishes before it starts",
                  program_.rank, channel);
  }

  /// Strips are there and long enough for their segments.
  void strips(const std::vector<Message>& messages) const {
    for (const Message& message : messages) {
      require(alive_[message.strip], "is not alive", message.strip);
      for (const Segment& segment : message.segments)
        require(segment.offset + segment.view.box.volume() <=
                    program_.buffers[message.strip].box.volume(),
                "is too short for its segments", message.strip);
    }
  }

  void visit(const Alloc& alloc) {
    require(!alive_[alloc.buffer], "is allocated twice", alloc.buffer);
    alive_[alloc.buffer] = true;
  }
  void visit(const Free& free) {
    require(alive_[free.buffer], "is freed twice", free.buffer);
    require(!sending_.contains(free.buffer) && !receiving_.contains(free.buffer),
            "is freed in the middle of a transfer", free.buffer);
    require(!reducing_.contains(free.buffer), "is freed in the middle of a reduction", free.buffer);
    alive_[free.buffer] = false;
  }
  void visit(const Fill& fill) {
    for (const Box& box : fill.boxes) write(View{fill.buffer, box});
  }
  void visit(const Copy& copy) {
    read(copy.from);
    write(copy.to);
  }
  void visit(const Load& load) { write(load.to); }
  void visit(const Run& run) {
    for (const Argument& argument : run.arguments)
      is_written(run.phase, argument.role) ? write(argument.view) : read(argument.view);
  }
  void visit(const StartTransfer& transfer) {
    start(transfer.channel);
    strips(transfer.sends);
    strips(transfer.receives);
    for (const Message& message : transfer.sends) {
      for (const Segment& segment : message.segments) {
        read(segment.view);
        if (segment.view.buffer != message.strip) write(message.strip);
      }
      sending_.insert(message.strip);
    }
    for (const Message& message : transfer.receives) {
      write(message.strip);
      receiving_.insert(message.strip);
    }
    transfers_[transfer.channel] = &transfer;
  }
  void visit(const FinishTransfer& transfer) {
    finish(transfer.channel);
    const StartTransfer& started = *transfers_.at(transfer.channel);
    for (const Message& message : started.sends) sending_.erase(sending_.find(message.strip));
    for (const Message& message : started.receives) receiving_.erase(message.strip);
    transfers_.erase(transfer.channel);
    for (BufferId strip : transfer.strips) require(alive_[strip], "is not alive", strip);
  }
  void visit(const Unpack& unpack) {
    strips(unpack.messages);
    for (const Message& message : unpack.messages) {
      read(message.strip);
      for (const Segment& segment : message.segments) write(segment.view);
    }
  }
  void visit(const StartReduce& reduce) {
    start(reduce.channel);
    for (BufferId buffer : {reduce.buffer, reduce.received}) {
      if (buffer < 0) continue;
      write(buffer);
      reducing_.insert(buffer);
    }
  }
  void visit(const AdvanceReduce& reduce) {
    TESSERA_CHECK(open_.contains(reduce.channel), "rank {}: channel {} advances before it starts",
                  program_.rank, reduce.channel);
  }
  void visit(const FinishReduce& reduce) {
    finish(reduce.channel);
    for (BufferId buffer : {reduce.buffer, reduce.received}) reducing_.erase(buffer);
  }
  void visit(const Derive& derive) {
    for (BufferId source : derive.sources) read(source);
    write(derive.result);
    write(derive.updated);
  }
  void visit(const DeriveGradients& derive) {
    read(derive.gradient);
    for (const View& gradient : derive.gradients)
      if (gradient.buffer >= 0) write(gradient);
  }
  void visit(const ScaleGradients& scale) { write(scale.buffers); }
  void visit(const SquareGradients& squares) {
    for (const Square& square : squares.gradients) read(square.gradient);
    write(squares.squares);
  }
  void visit(const Clip& clip) {
    read(clip.squares);
    write(clip.norm);
    write(clip.buckets);
  }
  void visit(const Update& update) {
    if (update.loss >= 0) read(update.loss);
    read(update.norm);
    for (BufferId bucket : update.buckets) read(bucket);
    write(update.weights);
    write(update.state);
  }
  void visit(const Enter&) {}

  const Program& program_;
  std::vector<bool> alive_;
  std::set<int> open_;
  std::multiset<BufferId> sending_;  // one may go to several ranks
  std::set<BufferId> receiving_;
  std::set<BufferId> reducing_;
  std::map<int, const StartTransfer*> transfers_;  // by open channel
  size_t at_ = 0;
};

}  // namespace

void check_program(const Program& program) { BufferCheck(program).run(); }

void check_programs(const std::vector<Program>& programs) {
  for (const Program& program : programs) check_program(program);
  check_messages(programs);
}

}  // namespace tessera

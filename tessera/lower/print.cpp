#include <fmt/format.h>

#include "tessera/lower/program.h"

namespace tessera {
namespace {

const char* name_of(Role role) {
  switch (role) {
    case Role::kInput:
      return "in";
    case Role::kOutput:
      return "out";
    case Role::kGradOutput:
      return "grad-out";
    case Role::kGradInput:
      return "grad-in";
    case Role::kSaved:
      return "saved";
    case Role::kPieceStatistics:
      return "statistics";
    case Role::kMergedStatistics:
      return "merged";
    case Role::kPieceGradStatistics:
      return "grad-statistics";
    case Role::kMergedGradStatistics:
      return "grad-merged";
    case Role::kGathered:
      return "gathered";
    case Role::kLoss:
      return "loss";
  }
  return "?";
}

class Printer {
 public:
  Printer(const Program& program, const Graph& graph) : program_(program), graph_(graph) {}

  std::string operator()(const Alloc& alloc) const {
    const Buffer& buffer = program_.buffers[alloc.buffer];
    return fmt::format("Alloc {} {}{} \"{}\"", name(alloc.buffer), to_string(buffer.box),
                       buffer.adopted ? " adopted" : "", buffer.name);
  }
  std::string operator()(const Free& free) const {
    return fmt::format("Free {}", name(free.buffer));
  }
  std::string operator()(const Fill& fill) const {
    std::string text = fmt::format("Fill {}", name(fill.buffer));
    for (const Box& box : fill.boxes) text += fmt::format(" {}", to_string(box));
    return text;
  }
  std::string operator()(const Copy& copy) const {
    return fmt::format("Copy {} {} {}", view(copy.from), combine(copy.combine), view(copy.to));
  }
  std::string operator()(const Load& load) const {
    return fmt::format("Load {} -> {}", graph_.value(load.value).name, view(load.to));
  }
  std::string operator()(const Run& run) const {
    const Node& node = graph_.node(run.node);
    std::string text =
        fmt::format("Run {} {} ({})", node.op->kind(), node.name, to_string(run.phase));
    if (run.piece >= 0) text += fmt::format(" piece {}", run.piece);
    for (const Argument& argument : run.arguments)
      text += fmt::format(" {}={}", name_of(argument.role), view(argument.view));
    return text;
  }
  std::string operator()(const StartTransfer& transfer) const {
    return fmt::format("StartTransfer #{}{}{}", transfer.channel, messages(transfer.sends, "to"),
                       messages(transfer.receives, "from"));
  }
  std::string operator()(const FinishTransfer& transfer) const {
    return fmt::format("FinishTransfer #{}", transfer.channel);
  }
  std::string operator()(const Unpack& unpack) const {
    std::string text = "Unpack";
    for (const Message& message : unpack.messages)
      for (const Segment& segment : message.segments)
        text += fmt::format(" {} {} {}", name(message.strip), combine(unpack.combine),
                            view(segment.view));
    return text;
  }
  std::string operator()(const StartReduce& reduce) const {
    return fmt::format("StartReduce #{} {}", reduce.channel, name(reduce.buffer));
  }
  std::string operator()(const FinishReduce& reduce) const {
    return fmt::format("FinishReduce #{} {}", reduce.channel, name(reduce.buffer));
  }
  std::string operator()(const StartGather& gather) const {
    return fmt::format("StartGather #{} {}", gather.channel, name(gather.buffer));
  }
  std::string operator()(const FinishGather& gather) const {
    return fmt::format("FinishGather #{} {}", gather.channel, name(gather.buffer));
  }
  std::string operator()(const Update&) const { return "Update"; }
  std::string operator()(const Enter& enter) const {
    if (enter.part == Enter::Part::kSetUp) return "Enter set-up";
    if (enter.part == Enter::Part::kFinish) return "Enter finish";
    return fmt::format("Enter {} of chunk {} (stage {}), micro-batch {}",
                       to_string(enter.task.kind), enter.task.chunk, enter.stage,
                       enter.task.micro_batch);
  }

 private:
  static std::string name(BufferId buffer) { return fmt::format("%{}", buffer); }
  static const char* combine(Combine combine) { return combine == Combine::kAdd ? "+>" : "->"; }
  std::string view(const View& view) const {
    if (view.buffer < 0) return "nothing";
    const bool whole = program_.buffers[view.buffer].box == view.box;
    return fmt::format("{}{}", name(view.buffer), whole ? "" : to_string(view.box));
  }
  std::string messages(const std::vector<Message>& messages, const char* preposition) const {
    std::string text;
    for (const Message& message : messages)
      text += fmt::format(" {} {}: {} ({})", preposition, message.peer, name(message.strip),
                          program_.buffers[message.strip].box.volume());
    return text;
  }

  const Program& program_;
  const Graph& graph_;
};

}  // namespace

std::string to_string(const Instruction& instruction, const Program& program, const Graph& graph) {
  return std::visit(Printer(program, graph), instruction);
}

std::string to_string(const Program& program, const Graph& graph) {
  std::string text = fmt::format("program of rank {}/{}\n", program.rank, program.num_ranks);
  for (const Instruction& instruction : program.instructions)
    text += fmt::format("  {}\n", to_string(instruction, program, graph));
  return text;
}

}  // namespace tessera

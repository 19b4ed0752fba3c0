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
    case Role::kWeight:
      return "weight";
    case Role::kGradWeight:
      return "grad-weight";
    case Role::kRunning:
      return "running";
    case Role::kSaved:
      return "saved";
    case Role::kScratch:
      return "scratch";
    case Role::kPieceStatistics:
      return "statistics";
    case Role::kMergedStatistics:
      return "merged";
    case Role::kPieceGradStatistics:
      return "grad-statistics";
    case Role::kMergedGradStatistics:
      return "grad-merged";
    case Role::kRow:
      return "row";
    case Role::kCombined:
      return "combined";
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
    const std::string tier =
        buffer.tier == Tier::kDevice ? "" : fmt::format(" on {}", to_string(buffer.tier));
    return fmt::format("Alloc {} {}{} \"{}\"", name(alloc.buffer), to_string(buffer.box), tier,
                       buffer.name);
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
    return fmt::format("StartReduce #{} {} over {} ranks", reduce.channel, name(reduce.buffer),
                       reduce.members.size());
  }
  std::string operator()(const AdvanceReduce& reduce) const {
    return fmt::format("AdvanceReduce #{} {} round {}", reduce.channel, name(reduce.buffer),
                       reduce.round + 1);
  }
  std::string operator()(const FinishReduce& reduce) const {
    return fmt::format("FinishReduce #{} {}", reduce.channel, name(reduce.buffer));
  }
  std::string operator()(const Derive& derive) const {
    return fmt::format("Derive{} -> {}{}", names(derive.sources), name(derive.result),
                       derive.updated.empty() ? "" : ", updates" + names(derive.updated));
  }
  std::string operator()(const DeriveGradients& derive) const {
    std::string text = fmt::format("DeriveGradients {} +>", view(derive.gradient));
    for (const View& gradient : derive.gradients) text += " " + view(gradient);
    return text;
  }
  std::string operator()(const ScaleGradients& scale) const {
    return fmt::format("ScaleGradients{} by {}", names(scale.buffers), scale.factor);
  }
  std::string operator()(const SquareGradients& squares) const {
    std::string text = fmt::format("SquareGradients -> {}:", name(squares.squares));
    for (const Square& square : squares.gradients) text += " " + view(square.gradient);
    return text;
  }
  std::string operator()(const Clip& clip) const {
    const std::string limit = clip.max_norm > 0 ? fmt::format(" to {}", clip.max_norm) : "";
    return fmt::format("Clip{}{}, norm -> {}", names(clip.buckets), limit, name(clip.norm));
  }
  std::string operator()(const Update& update) const {
    return fmt::format("Update{} by{}, state{}", names(update.weights), names(update.buckets),
                       names(update.state));
  }
  std::string operator()(const Enter& enter) const {
    if (enter.part == Enter::Part::kSetUp) return "Enter set-up";
    if (enter.part == Enter::Part::kFinish) return "Enter finish";
    return fmt::format("Enter {} of chunk {} (stage {}), micro-batch {}",
                       to_string(enter.task.kind), enter.task.chunk, enter.stage,
                       enter.task.micro_batch);
  }

 private:
  static std::string name(BufferId buffer) { return fmt::format("%{}", buffer); }
  static std::string names(const std::vector<BufferId>& buffers) {
    std::string text;
    for (BufferId buffer : buffers) text += " " + name(buffer);
    return text;
  }
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

const char* to_string(Tier tier) {
  switch (tier) {
    case Tier::kDevice:
      return "device";
    case Tier::kHost:
      return "host";
    case Tier::kFile:
      return "file";
  }
  return "?";
}

const char* to_string(Stream stream) {
  switch (stream) {
    case Stream::kCompute:
      return "compute";
    case Stream::kCommunication:
      return "communication";
    case Stream::kCopy:
      return "copy";
  }
  return "?";
}

std::string to_string(const Instruction& instruction, const Program& program, const Graph& graph) {
  return std::visit(Printer(program, graph), instruction);
}

std::string to_string(const Program& program, const Graph& graph) {
  std::string text = fmt::format("program of rank {}/{}\n", program.rank, program.num_ranks);
  for (const Instruction& instruction : program.instructions)
    text += fmt::format(
        "  {:<13} {}\n",
        stream_of(instruction) == Stream::kCompute ? "" : to_string(stream_of(instruction)),
        to_string(instruction, program, graph));
  return text;
}

}  // namespace tessera

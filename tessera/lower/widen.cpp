#include "tessera/lower/widen.h"

#include <algorithm>

namespace tessera {
namespace {

/// Operands that are values or gradients of values.
bool is_of_value(Role role) {
  return role == Role::kInput || role == Role::kOutput || role == Role::kGradOutput ||
         role == Role::kGradInput;
}

class Widening {
 public:
  Widening(const Graph& graph, at::DeviceType device, Program* program)
      : graph_(graph), device_(device), program_(*program) {}

  void run() {
    std::vector<Instruction> before = std::exchange(program_.instructions, {});
    for (Instruction& instruction : before) {
      if (auto* run = std::get_if<Run>(&instruction); run != nullptr && !runs_as_it_is(*run))
        append_widened(std::move(*run));
      else
        program_.instructions.push_back(std::move(instruction));
    }
  }

 private:
  bool has_type(const Argument& argument, ElementType type) const {
    return is_of_value(argument.role) && argument.view.buffer >= 0 &&
           program_.buffers[argument.view.buffer].element == type;
  }

  bool runs_as_it_is(const Run& run) const {
    const auto any = [&](ElementType type) {
      return std::ranges::any_of(run.arguments,
                                 [&](const Argument& each) { return has_type(each, type); });
    };
    return !any(ElementType::kReal) ||
           (graph_.node(run.node).op->takes_narrow(run.phase, device_) && !any(ElementType::kWide));
  }

  void append_widened(Run run) {
    std::vector<Copy> results;
    for (Argument& argument : run.arguments) {
      if (!has_type(argument, ElementType::kReal)) continue;
      const View narrow = std::exchange(argument.view, make_wide(argument.view));
      if (is_written(run.phase, argument.role))
        results.push_back(Copy{argument.view, narrow});
      else
        program_.instructions.push_back(Copy{narrow, argument.view});
    }
    program_.instructions.push_back(std::move(run));
    program_.instructions.insert(program_.instructions.end(), results.begin(), results.end());
  }

  View make_wide(const View& narrow) {
    Buffer buffer;
    buffer.name = program_.buffers[narrow.buffer].name + " in float32";
    buffer.kind = BufferKind::kScratch;
    buffer.box = narrow.box;
    buffer.element = ElementType::kWide;
    program_.buffers.push_back(std::move(buffer));
    return {static_cast<BufferId>(program_.buffers.size() - 1), narrow.box};
  }

  const Graph& graph_;
  const at::DeviceType device_;
  Program& program_;
};

}  // namespace

void widen(const Graph& graph, at::DeviceType device, Program* program) {
  Widening(graph, device, program).run();
}

}  // namespace tessera

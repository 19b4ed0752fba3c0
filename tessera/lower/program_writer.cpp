#include "tessera/lower/program_writer.h"

#include <algorithm>

#include "tessera/graph/number_type.h"

namespace tessera {

ProgramWriter::ProgramWriter(const StepPlan& step_plan, int rank)
    : step(step_plan), placed(step.placed), graph(step.graph()), here(step.placed, rank) {
  program.rank = rank;
  program.num_ranks = placed.plan.num_ranks();
  for (ParameterId id = 0; id < static_cast<ParameterId>(step.holders.size()); ++id) {
    if (!holds(step.holders[id], rank)) continue;
    const Parameter& parameter = graph.parameters()[id];
    weight_of_[id] = add_buffer(parameter.name, BufferKind::kWeight, Box::whole(parameter.shape),
                                ElementType::kWide);
    program.parameters.push_back(id);
    program.weights.push_back(weight_of_[id]);
  }
}

BufferId ProgramWriter::add_buffer(std::string name, BufferKind kind, const Box& box,
                                   ElementType element) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.kind = kind;
  buffer.box = box;
  buffer.element = element;
  program.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(program.buffers.size() - 1);
}

Run ProgramWriter::begin_run(NodeId id, Phase phase, int piece) {
  return begin_run(id, phase, piece, placed.output_layout(id).piece(piece).box);
}

Run ProgramWriter::begin_run(NodeId id, Phase phase, int piece, const Box& box) {
  const Node& node = graph.node(id);
  Run run{id, phase, piece, box, {}};
  for (size_t i = 0; i < node.parameters.size(); ++i)
    run.arguments.push_back({Role::kWeight, static_cast<int>(i), weight(node.parameters[i])});
  for (size_t i = 0; i < node.buffers.size(); ++i)
    run.arguments.push_back({Role::kRunning, static_cast<int>(i), weight(node.buffers[i])});
  const ScratchBytes wish = node.op->scratch_bytes(
      phase, run.box, node.types, Numbers(number_in(phase, node), step.options.device));
  if (const int64_t bytes = wish.within(step.scratch_bytes); bytes > 0) {
    const BufferId scratch = add_buffer(node.name + " scratch", BufferKind::kScratch,
                                        Box{{0, bytes}}, ElementType::kByte);
    run.arguments.push_back({Role::kScratch, 0, whole(scratch)});
  }
  return run;
}

/// What a kernel's images are (widen.h).
at::ScalarType ProgramWriter::number_in(Phase phase, const Node& node) const {
  const auto is_wide = [&](ValueId value) { return element_of(value) == ElementType::kWide; };
  const bool narrow = node.op->takes_narrow(phase, step.options.device) && !is_wide(node.output) &&
                      std::ranges::none_of(node.inputs, is_wide);
  return narrow ? step.options.real : wide(step.options.real);
}

void ProgramWriter::add_merged_statistics(NodeId id, int piece,
                                          std::vector<Argument>* arguments) const {
  const int micro_batch = step.micro_batch_of(graph.node(id).output, piece);
  if (const auto found = merged_statistics.find({id, micro_batch});
      found != merged_statistics.end())
    arguments->push_back({Role::kMergedStatistics, 0, whole(found->second)});
}

ElementType ProgramWriter::element_of(ValueId value) const {
  if (graph.type(value).element == Element::kIndex) return ElementType::kIndex;
  return step.stays_wide[value] ? ElementType::kWide : ElementType::kReal;
}

/// That of an output is as large as it is, and no better known than others.
ElementType ProgramWriter::element_of_gradient(ValueId value) const {
  return has_parts(graph.type(value)) ? ElementType::kWide : ElementType::kReal;
}

}  // namespace tessera

#include "tessera/lower/gradient_writer.h"

#include <algorithm>

#include "tessera/graph/step_numbers.h"
#include "tessera/lower/piece_parts.h"

namespace tessera {
namespace {

/// The entry of a piece or need; -1 where there was none.
BufferId& entry(std::map<int, BufferId>& buffers, int key) {
  return buffers.try_emplace(key, -1).first->second;
}

}  // namespace

GradientWriter::GradientWriter(ProgramWriter* writer, ExchangeWriter* exchanges,
                               ValueWriter* values, StatisticsWriter* statistics,
                               BucketWriter* buckets)
    : writer_(*writer),
      exchanges_(*exchanges),
      values_(*values),
      statistics_(*statistics),
      buckets_(*buckets),
      halos_(writer, exchanges) {
  for (const ValuePlan& plan : writer_.placed.values) instances_.emplace_back(plan);
  const Graph& graph = writer_.graph;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id)
    for (int input = 0; input < static_cast<int>(graph.node(id).inputs.size()); ++input) {
      const int group = writer_.step.gradient_group(id, input);
      if (group < 0 || !writer_.step.passes_gradient(id, input)) continue;
      for (int m = 0; m < writer_.step.num_micro_batches(); ++m)
        ++pending_readings_[{graph.node(id).inputs[input], group, m}];
    }
}

// ---- What a node does ---------------------------------------------------------------------------

void GradientWriter::backward(NodeId id, int m, bool with_weights) {
  const Node& node = writer_.graph.node(id);
  if (!writer_.step.backward.needs_gradient[node.output]) return;
  if (!hides_weight_gradients(id, m)) run_held_back();
  // Recomputation comes first: it hides the adjoint exchange that complete() waits for.
  if (!writer_.here.pieces(node.output, m).empty())
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.op->keeps_input(static_cast<int>(i))) values_.recompute(node.inputs[i], m);
  start_statistics(id, m);
  if (!node.op->is_loss() && writer_.here.runs(id, m)) {
    complete(node.output, m);
    if (writer_.step.gathers_gradient(id))
      start_halos({node.output}, m);
    else if (node.op->input_access(0) == InputAccess::kDense)
      make_grad_output_dense(id, m);
  }
  finish_statistics(id, m);
  if (writer_.step.gathers_gradient(id) && writer_.here.runs(id, m)) halos_.finish(node.output, m);
  input_gradient(id, m);
  buckets_.input_gradient_ran(id, m);
  if (node.op->weight_gradient_from_statistics())
    weight_gradient(id, m);
  else if (with_weights)
    held_back_.push_back({id, m});
}

/// Weight gradients are in no hurry: they run while statistics of the next node's gradient cross.
bool GradientWriter::hides_weight_gradients(NodeId id, int m) const {
  const Node& node = writer_.graph.node(id);
  return node.op->backward_statistics(node.types) > 0 &&
         writer_.placed.ranks_of_node(id, m).size() > 1;
}

void GradientWriter::run_held_back() {
  for (const auto& [node, m] : std::exchange(held_back_, {})) weight_gradient(node, m);
}

/// Begins the Run of a piece with what the kernels of backward read.
Run GradientWriter::begin_run(NodeId id, Phase phase, int piece) {
  return begin_run(id, phase, piece, writer_.placed.output_layout(id).piece(piece).box);
}

Run GradientWriter::begin_run(NodeId id, Phase phase, int piece, const Box& box) {
  const Node& node = writer_.graph.node(id);
  Run run = writer_.begin_run(id, phase, piece, box);
  for (int input = 0; input < static_cast<int>(node.inputs.size()); ++input)
    if (node.op->keeps_input(input))
      run.arguments.push_back({Role::kInput, input, values_.input(id, input, piece, box)});
  if (node.op->keeps_output())
    run.arguments.push_back({Role::kOutput, 0, {values_.home(node.output, piece).buffer, box}});
  if (!node.op->is_loss()) {
    View view{grad_output(id, piece).buffer, box};
    if (phase == Phase::kInputGradient && writer_.step.gathers_gradient(id))
      view.box = writer_.placed.values[node.output].gradient_halo.needs[piece].box;
    run.arguments.push_back({Role::kGradOutput, 0, view});
  }
  if (const BufferId saved = values_.saved(id, piece); saved >= 0)
    run.arguments.push_back({Role::kSaved, 0, writer_.whole(saved)});
  writer_.add_merged_statistics(id, piece, &run.arguments);
  if (const auto found = row_of_piece_.find({id, piece}); found != row_of_piece_.end())
    run.arguments.push_back({Role::kPieceGradStatistics, 0, writer_.whole(found->second)});
  const int m = writer_.step.micro_batch_of(node.output, piece);
  if (const auto found = merged_.find({id, m}); found != merged_.end())
    run.arguments.push_back({Role::kMergedGradStatistics, 0, writer_.whole(found->second)});
  return run;
}

/// Begins with the elements of the gradient that other ranks add nothing to, while their additions
/// to the others are under way.
void GradientWriter::start_statistics(NodeId id, int m) {
  const Node& node = writer_.graph.node(id);
  if (node.op->backward_statistics(node.types) == 0) return;
  for (int piece : writer_.here.pieces(node.output, m)) {
    const Box& whole = writer_.placed.output_layout(id).piece(piece).box;
    PieceParts parts{{whole}, {}};
    if (has_home(node.output, piece) && !started_[{node.output, m}].empty() && runs_in_parts(node))
      parts =
          split_piece(whole, boxes_that_cross(writer_.placed, writer_.here, node.output, piece, m));
    for (const Box& box : parts.rest) add_statistics(id, piece, box);
    late_statistics_[{id, piece}] = std::move(parts.crossing);
  }
}

void GradientWriter::add_statistics(NodeId id, int piece, const Box& box) {
  const Node& node = writer_.graph.node(id);
  const BufferId row =
      writer_.add_buffer(node.name + " gradient statistics", BufferKind::kStatistics,
                         Box{{0, node.op->backward_statistics(node.types)}}, ElementType::kDouble);
  rows_[{id, piece}].push_back(row);
  Run run = begin_run(id, Phase::kPieceGradStatistics, piece, box);
  run.arguments.push_back({Role::kPieceGradStatistics, 0, writer_.whole(row)});
  writer_.append(std::move(run));
}

/// The rest, and the sums over all ranks. Weight gradients that were held back run meanwhile.
void GradientWriter::finish_statistics(NodeId id, int m) {
  const Node& node = writer_.graph.node(id);
  if (node.op->backward_statistics(node.types) == 0) return;
  if (!writer_.here.runs(id, m)) return run_held_back();
  std::vector<BufferId> rows;
  for (int piece : writer_.here.pieces(node.output, m)) {
    for (const Box& box : late_statistics_.at({id, piece})) add_statistics(id, piece, box);
    rows.push_back(statistics_.combine(id, Pass::kBackward, rows_.at({id, piece})));
    row_of_piece_[{id, piece}] = rows.back();
  }
  Climb climb = statistics_.start_gradients(id, m, rows);
  run_held_back();
  merged_[{id, m}] = statistics_.finish(&climb);
}

/// What other ranks read of the gradient as a halo is written first, and travels while the rest is
/// written.
void GradientWriter::input_gradient(NodeId id, int m) {
  const Node& node = writer_.graph.node(id);
  const bool measures = buckets_.measures_gradient(node);
  const std::vector<ValueId> read_elsewhere = halos_.written_by(id);
  const bool in_parts = !measures && runs_in_parts(node) && reads_pixel_by_pixel(node);
  std::vector<InputGradient> pieces;
  for (int piece : writer_.here.pieces(node.output, m)) {
    InputGradient work{piece, gradient_targets(id, piece), {}};
    if (work.targets.empty() && !measures) continue;
    const Box& whole = writer_.placed.output_layout(id).piece(piece).box;
    std::vector<Box> crossing;
    for (ValueId value : read_elsewhere)
      if (in_parts)
        add_boxes_of_gradient_that_cross(writer_.placed, writer_.here, value, piece, m, &crossing);
    PieceParts parts = split_piece(whole, std::move(crossing));
    for (const Box& box : parts.crossing) run_input_gradient(id, work, box);
    work.rest = std::move(parts.rest);
    pieces.push_back(std::move(work));
  }
  if (in_parts) start_halos(read_elsewhere, m);
  for (const InputGradient& work : pieces) {
    for (const Box& box : work.rest) run_input_gradient(id, work, box);
    for (const auto& [input, view] : work.targets)
      if (const BufferId shared = *shared_buffer(id, input, work.piece); view.buffer != shared)
        writer_.append(Copy{view, {shared, view.box}, Combine::kAdd});
  }
  if (!in_parts) start_halos(read_elsewhere, m);
  for (int input = 0; input < std::ssize(node.inputs); ++input)
    if (writer_.step.passes_gradient(id, input)) reading_done(id, input, m);
  if (measures) buckets_.loss_added();
}

void GradientWriter::start_halos(const std::vector<ValueId>& values, int m) {
  for (ValueId value : values)
    halos_.start(value, m, [&](int piece) { return home(value, piece); });
}

std::vector<std::pair<int, View>> GradientWriter::gradient_targets(NodeId id, int piece) {
  std::vector<std::pair<int, View>> targets;
  for (int input = 0; input < std::ssize(writer_.graph.node(id).inputs); ++input)
    if (writer_.step.passes_gradient(id, input) &&
        !writer_.step.gradient_box(id, input, piece).empty())
      targets.emplace_back(input, target(id, input, piece));
  return targets;
}

void GradientWriter::run_input_gradient(NodeId id, const InputGradient& work, const Box& box) {
  const Node& node = writer_.graph.node(id);
  const bool is_whole = box == writer_.placed.output_layout(id).piece(work.piece).box;
  Run run = begin_run(id, Phase::kInputGradient, work.piece, box);
  if (buckets_.measures_gradient(node))
    run.arguments.push_back({Role::kLoss, 0, {writer_.program.loss, Box{step_numbers(*node.op)}}});
  for (const auto& [input, view] : work.targets)
    run.arguments.push_back({Role::kGradInput, input, {view.buffer, is_whole ? view.box : box}});
  writer_.append(std::move(run));
}

void GradientWriter::weight_gradient(NodeId id, int m) {
  const Node& node = writer_.graph.node(id);
  if (!writer_.step.backward.needs_gradient[node.output] || !writer_.graph.has_trainable(node))
    return;
  for (int piece : writer_.here.pieces(node.output, m)) {
    Run run = begin_run(id, Phase::kWeightGradient, piece);
    for (size_t i = 0; i < node.parameters.size(); ++i)
      run.arguments.push_back(
          {Role::kGradWeight, static_cast<int>(i), buckets_.gradient(node.parameters[i])});
    writer_.append(std::move(run));
  }
  buckets_.weight_gradient_ran(id, m);
  buckets_.contributed(node);
}

View GradientWriter::grad_output(NodeId id, int piece) const {
  const Box& box = writer_.placed.output_layout(id).piece(piece).box;
  if (const BufferId with_halo = halos_.buffer(writer_.graph.node(id).output, piece);
      with_halo >= 0)
    return {with_halo, box};
  const auto dense = dense_grad_outputs_.find({id, piece});
  if (dense != dense_grad_outputs_.end()) return {dense->second, box};
  return {instances_[writer_.graph.node(id).output].homes.at(piece), box};
}

/// Convolutions read a whole dense gradient; where it lies inside margins (two convolutions without
/// anything between), this is a counted copy.
void GradientWriter::make_grad_output_dense(NodeId id, int m) {
  const Node& node = writer_.graph.node(id);
  for (int piece : writer_.here.pieces(node.output, m)) {
    const View view = grad_output(id, piece);
    if (writer_.buffer(view.buffer).box == view.box) continue;
    const BufferId dense = writer_.add_buffer(node.name + " dense gradient", BufferKind::kGradient,
                                              view.box, writer_.element_of_gradient(node.output));
    writer_.append(Copy{view, {dense, view.box}, Combine::kStore});
    dense_grad_outputs_[{id, piece}] = dense;
  }
}

// ---- How a value's gradient grows ---------------------------------------------------------------

/// Where contributions of a reading come together; -1 until there is one.
BufferId* GradientWriter::shared_buffer(NodeId id, int input, int piece) {
  Instance& instance = instances_[writer_.graph.node(id).inputs[input]];
  const int group = writer_.step.gradient_group(id, input);
  return group >= 0 ? &entry(instance.groups[group], piece)
                    : &entry(instance.homes, home_piece(id, input, piece));
}

int GradientWriter::home_piece(NodeId id, int input, int piece) const {
  return writer_.step.gathers_gradient(id) ? piece : writer_.placed.home_piece(id, input, piece);
}

/// Where a kernel writes its gradient: the home or the group's buffer while there is none yet, and
/// otherwise a buffer of its own.
View GradientWriter::target(NodeId id, int input, int piece) {
  const Node& node = writer_.graph.node(id);
  const ValueId value = node.inputs[input];
  const Box needed = writer_.step.gradient_box(id, input, piece);
  BufferId* shared = shared_buffer(id, input, piece);
  const std::string name = writer_.graph.value(value).name + " gradient";
  if (*shared >= 0)
    return {writer_.add_buffer(name + " part", BufferKind::kGradient, needed,
                               writer_.element_of_gradient(value)),
            needed};
  const ValuePlan& plan = writer_.placed.values[value];
  const int group = writer_.step.gradient_group(id, input);
  if (group < 0) {
    const int own = home_piece(id, input, piece);
    *shared = halos_.add_home(value, own);
    if (!needed.contains(plan.layout.piece(own).box)) writer_.fill(*shared);
    return {*shared, needed};
  }
  const Box box = writer_.step.gradient_box_of_group(value, group, piece);
  *shared =
      writer_.add_buffer(name, BufferKind::kGradient, box, writer_.element_of_gradient(value));
  if (!(needed == box)) writer_.fill(*shared);
  return {*shared, needed};
}

void GradientWriter::reading_done(NodeId id, int input, int m) {
  const ValueId value = writer_.graph.node(id).inputs[input];
  const int group = writer_.step.gradient_group(id, input);
  if (group >= 0 && --pending_readings_.at({value, group, m}) == 0) complete_group(value, group, m);
}

/// All readings of a group have contributed: own parts are added here, the rest goes to its owners.
void GradientWriter::complete_group(ValueId value, int g, int m) {
  const EdgeGroup& group = writer_.placed.values[value].groups[g];
  Instance& instance = instances_[value];
  for (int piece : writer_.here.pieces(value, m))
    if (BufferId& own = entry(instance.homes, piece);
        own < 0 && piece < static_cast<int>(group.needs.size()) && group.covers_piece[piece])
      own = entry(instance.groups[g], piece);
  for (const Move& move : writer_.here.moves(value, g, m)) {
    if (move.from != move.to || !writer_.step.contributes(value, g, move.need)) continue;
    const BufferId part = instance.groups[g].at(move.need);
    const BufferId to = home(value, move.source_piece);
    if (part == to && move.source_piece == move.need) continue;
    writer_.append(Copy{{part, move.box}, {to, move.box}, Combine::kAdd});
  }
  start_adjoint(value, g, m);
}

/// What comes back from the readers on other ranks.
std::vector<Message> GradientWriter::returning(ValueId value, int g, int m,
                                               const std::function<View(const Move&)>& view_of,
                                               std::vector<const Move*>* only) const {
  const int rank = writer_.here.rank();
  return ExchangeWriter::route(
      writer_.here.moves(value, g, m),
      [&](const Move& move) {
        return move.from == rank && writer_.step.contributes(value, g, move.need) ? move.to : -1;
      },
      view_of, only);
}

void GradientWriter::start_adjoint(ValueId value, int g, int m) {
  const int rank = writer_.here.rank();
  Exchange exchange;
  exchange.sends = ExchangeWriter::route(
      writer_.here.moves(value, g, m),
      [&](const Move& move) {
        return move.to == rank && writer_.step.contributes(value, g, move.need) ? move.from : -1;
      },
      [&](const Move& move) {
        return View{instances_[value].groups[g].at(move.need), move.box};
      });
  exchange.receives = returning(
      value, g, m,
      [&](const Move& move) {
        return View{-1, move.box};
      },
      &exchange.only_move);
  exchanges_.add_strips(writer_.graph.value(value).name + " gradient",
                        writer_.element_of_gradient(value), &exchange);
  const bool owns = writer_.here.owns(value, m);
  exchanges_.start(writer_.placed.values[value].groups[g].channel_of(m) + 1, exchange, owns);
  if (exchange.idle() || !owns) return;
  adjoints_[{value, g, m}] = std::move(exchange);
  started_[{value, m}].push_back(g);
}

/// Received parts are added to the gradient's home; one that is all of a piece, where there is no
/// home yet, becomes it.
void GradientWriter::finish_adjoint(ValueId value, int g, int m) {
  const ValuePlan& plan = writer_.placed.values[value];
  const Exchange& exchange = adjoints_.at({value, g, m});
  exchanges_.finish(plan.groups[g].channel_of(m) + 1, exchange);
  std::vector<bool> taken_over(exchange.receives.size(), false);
  for (size_t i = 0; i < exchange.receives.size(); ++i) {
    const Move* move = exchange.only_move[i];
    if (move == nullptr || !(plan.layout.piece(move->source_piece).box == move->box)) continue;
    BufferId& own = entry(instances_[value].homes, move->source_piece);
    if (own >= 0) continue;
    own = exchange.receives[i].strip;
    taken_over[i] = true;
  }
  const auto to_home = [&](const Move& move) {
    return View{home(value, move.source_piece), move.box};
  };
  exchanges_.unpack(exchange, returning(value, g, m, to_home), taken_over, Combine::kAdd);
}

std::vector<std::pair<int, View>> GradientWriter::complete(ValueId value, int m) {
  for (int group : std::exchange(started_[{value, m}], {})) finish_adjoint(value, group, m);
  std::vector<std::pair<int, View>> pieces;
  for (int piece : writer_.here.pieces(value, m))
    pieces.push_back(
        {piece, {home(value, piece), writer_.placed.values[value].layout.piece(piece).box}});
  return pieces;
}

bool GradientWriter::has_home(ValueId value, int piece) const {
  const auto found = instances_[value].homes.find(piece);
  return found != instances_[value].homes.end() && found->second >= 0;
}

BufferId GradientWriter::home(ValueId value, int piece) {
  BufferId& own = entry(instances_[value].homes, piece);
  if (own >= 0) return own;
  own = halos_.add_home(value, piece);
  writer_.fill(own);
  return own;
}

}  // namespace tessera

#include "tessera/lower/value_writer.h"

#include "tessera/graph/step_numbers.h"
#include "tessera/lower/piece_parts.h"

namespace tessera {
namespace {

/// -1 where there is none: of a need that is empty.
BufferId buffer_or_none(const std::map<int, BufferId>& buffers, int key) {
  const auto found = buffers.find(key);
  return found == buffers.end() ? -1 : found->second;
}

}  // namespace

ValueWriter::ValueWriter(ProgramWriter* writer, ExchangeWriter* exchanges)
    : writer_(*writer), exchanges_(*exchanges) {
  for (const ValuePlan& plan : writer_.placed.values) instances_.emplace_back(plan);
}

void ValueWriter::load(ValueId value, int m) {
  make_homes(value, m);
  for (int piece : writer_.here.pieces(value, m)) writer_.append(Load{value, home(value, piece)});
  start_giving(value, m);
  copy_to_readers(value, m);
}

void ValueWriter::finish_exchanges(NodeId id, int m) {
  const Node& node = writer_.graph.node(id);
  for (int input = 0; input < static_cast<int>(node.inputs.size()); ++input)
    if (const int group = writer_.placed.group_of(id, input);
        group >= 0 && !writer_.step.is_zero(node.inputs[input]))
      finish_exchange(node.inputs[input], group, m);
}

void ValueWriter::forward(NodeId id, int m) {
  if (writer_.graph.node(id).op->is_loss()) return run_forward(id, m, Phase::kForward);
  make_homes(writer_.graph.node(id).output, m);
  run_and_give(id, m, std::nullopt);
}

void ValueWriter::forward_channels(NodeId id, int m, const Range& channels) {
  const ValueId value = writer_.graph.node(id).output;
  make_homes(value, m);
  for (int piece : writer_.here.pieces(value, m))
    run_part(id, Phase::kForward, piece, part_of_piece(value, piece, channels));
}

void ValueWriter::forward(NodeId id, int m, const Range& channels) {
  run_and_give(id, m, channels);
}

/// What other ranks need is computed first, and travels while the rest is computed.
void ValueWriter::run_and_give(NodeId id, int m, const std::optional<Range>& channels) {
  const ValueId value = writer_.graph.node(id).output;
  std::vector<std::pair<int, std::vector<Box>>> rest;  // by piece
  for (int piece : writer_.here.pieces(value, m))
    rest.emplace_back(piece, run_crossing(id, m, piece, part_of_piece(value, piece, channels)));
  start_giving(value, m);
  for (const auto& [piece, boxes] : rest)
    for (const Box& box : boxes) run_part(id, Phase::kForward, piece, box);
  copy_to_readers(value, m);
}

Box ValueWriter::part_of_piece(ValueId value, int piece,
                               const std::optional<Range>& channels) const {
  Box box = writer_.placed.values[value].layout.piece(piece).box;
  if (channels) box[1] = *channels;
  return box;
}

/// Runs the part of a box of a piece that readers on other ranks need, and returns the boxes that
/// are left to run. What an operator saves belongs to a whole piece: it runs on all of it
/// afterwards.
std::vector<Box> ValueWriter::run_crossing(NodeId id, int m, int piece, const Box& box) {
  const Node& node = writer_.graph.node(id);
  PieceParts parts{{box}, {}};
  if (runs_in_parts(node))
    parts = split_piece(box, boxes_that_cross(writer_.placed, writer_.here, node.output, piece, m));
  for (const Box& part : parts.crossing) run_part(id, Phase::kForward, piece, part);
  const bool again =
      !parts.rest.empty() && !parts.crossing.empty() && node.op->saved(box, node.types).numel > 0;
  return again ? std::vector<Box>{box} : parts.rest;
}

void ValueWriter::make_homes(ValueId value, int m) {
  for (int piece : writer_.here.pieces(value, m)) {
    const BufferId home =
        writer_.add_buffer(writer_.graph.value(value).name, BufferKind::kValue,
                           writer_.placed.values[value].home_box(piece), writer_.element_of(value));
    instances_[value].homes[piece] = home;
    fill_outside(home, value);
  }
}

bool ValueWriter::is_given(ValueId value, int group, int m) {
  if (again_[{value, m}] && !backward_reads(value, group)) return false;
  return writer_.here.owns(value, m) || writer_.here.reads(value, group, m);
}

/// Buffers of the consumers' groups, and the transfers that fill them from elsewhere. A rank that
/// only receives makes its buffers when they arrive: until then their strips are enough.
void ValueWriter::start_giving(ValueId value, int m) {
  for (int group = 0; group < num_groups(value); ++group) {
    if (!is_given(value, group, m)) continue;
    if (writer_.here.owns(value, m)) make_group_buffers(value, group, m);
    if (again_[{value, m}])
      unpack(value, group, m);
    else
      start_exchange(value, group, m);
  }
}

/// Fills them from the homes here.
void ValueWriter::copy_to_readers(ValueId value, int m) {
  for (int group = 0; group < num_groups(value); ++group)
    if (is_given(value, group, m)) copy_local_moves(value, group, m);
}

void ValueWriter::make_group_buffers(ValueId value, int g, int m) {
  const EdgeGroup& group = writer_.placed.values[value].groups[g];
  std::map<int, BufferId>& buffers = instances_[value].groups[g];
  for (int need : writer_.here.needs(value, g, m)) {
    if (buffers.contains(need)) continue;  // a strip that was taken over
    if (group.in_place[need]) {
      buffers[need] = instances_[value].homes.at(need);
      continue;
    }
    const BufferId buffer =
        writer_.add_buffer(writer_.graph.value(value).name + " with margins", BufferKind::kValue,
                           group.needs[need].box, writer_.element_of(value));
    buffers[need] = buffer;
    fill_outside(buffer, value);
  }
}

bool ValueWriter::backward_reads(ValueId value, int group) const {
  const Graph& graph = writer_.graph;
  const std::vector<Use>& uses = graph.value(value).uses;
  for (size_t u = 0; u < uses.size(); ++u)
    if (const Node& node = graph.node(uses[u].node);
        writer_.placed.values[value].group_of_use[u] == group &&
        (node.op->keeps_input(uses[u].input) || writer_.step.backward.recomputed[node.output]))
      return true;
  return false;
}

void ValueWriter::fill_outside(BufferId buffer, ValueId value) {
  std::vector<Box> parts =
      difference(writer_.buffer(buffer).box, Box::whole(writer_.graph.type(value).shape()));
  if (!parts.empty()) writer_.append(Fill{buffer, std::move(parts)});
}

void ValueWriter::copy_local_moves(ValueId value, int g, int m) {
  const EdgeGroup& group = writer_.placed.values[value].groups[g];
  for (const Move& move : writer_.here.moves(value, g, m)) {
    if (move.from != move.to || group.moves_in_place(move)) continue;
    writer_.append(Copy{{instances_[value].homes.at(move.source_piece), move.box},
                        {instances_[value].groups[g].at(move.need), move.box},
                        Combine::kStore});
  }
}

std::vector<Message> ValueWriter::receives(ValueId value, int g, int m,
                                           std::vector<const Move*>* only) const {
  const int rank = writer_.here.rank();
  return ExchangeWriter::route(
      writer_.here.moves(value, g, m),
      [&](const Move& move) { return move.to == rank ? move.from : -1; },
      [&](const Move& move) {
        return View{buffer_or_none(instances_[value].groups[g], move.need), move.box};
      },
      only);
}

void ValueWriter::start_exchange(ValueId value, int g, int m) {
  const int rank = writer_.here.rank();
  Exchange exchange;
  exchange.sends = ExchangeWriter::route(
      writer_.here.moves(value, g, m),
      [&](const Move& move) { return move.from == rank ? move.to : -1; },
      [&](const Move& move) {
        return View{instances_[value].homes.at(move.source_piece), move.box};
      });
  exchange.receives = receives(value, g, m, &exchange.only_move);
  exchanges_.add_strips(writer_.graph.value(value).name, writer_.element_of(value), &exchange);
  exchanges_.start(writer_.placed.values[value].groups[g].channel_of(m), exchange,
                   writer_.here.reads(value, g, m));
  started_[{value, g, m}] = std::move(exchange);
}

void ValueWriter::finish_exchange(ValueId value, int g, int m) {
  if (!writer_.here.reads(value, g, m) || std::exchange(finished_[{value, g, m}], true)) return;
  exchanges_.finish(writer_.placed.values[value].groups[g].channel_of(m),
                    started_.at({value, g, m}));
  unpack(value, g, m);
}

/// Puts what was received into its places; repeated after a recomputation, which communicates
/// nothing: the strips of the first exchange are still there.
void ValueWriter::unpack(ValueId value, int g, int m) {
  const Exchange& exchange = started_.at({value, g, m});
  std::vector<bool> taken_over(exchange.receives.size(), false);
  if (!writer_.here.owns(value, m)) {
    for (size_t i = 0; i < exchange.receives.size(); ++i)
      taken_over[i] = take_over_strip(value, g, exchange, i);
    make_group_buffers(value, g, m);
  }
  exchanges_.unpack(exchange, receives(value, g, m), taken_over, Combine::kStore);
}

/// A message that is all of a need is the need's buffer.
bool ValueWriter::take_over_strip(ValueId value, int g, const Exchange& exchange, size_t message) {
  const Move* move = exchange.only_move[message];
  if (move == nullptr ||
      !(writer_.placed.values[value].groups[g].needs[move->need].box == move->box))
    return false;
  instances_[value].groups[g][move->need] = exchange.receives[message].strip;
  return true;
}

void ValueWriter::run_forward(NodeId id, int m, Phase phase) {
  for (int piece : writer_.here.pieces(writer_.graph.node(id).output, m))
    run_part(id, phase, piece, writer_.placed.output_layout(id).piece(piece).box);
}

/// Runs a box of a piece. What it saves of the last one stays.
void ValueWriter::run_part(NodeId id, Phase phase, int piece, const Box& box) {
  const Node& node = writer_.graph.node(id);
  Run run = writer_.begin_run(id, phase, piece, box);
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i)
    if (!writer_.step.is_zero(node.inputs[i]))
      run.arguments.push_back({Role::kInput, i, input(id, i, piece, box)});
  writer_.add_merged_statistics(id, piece, &run.arguments);
  if (const Saved saved = node.op->saved(box, node.types); saved.numel > 0) {
    const BufferId buffer =
        writer_.add_buffer(node.name + " saved", BufferKind::kSaved, Box{{0, saved.numel}},
                           saved.type == at::kByte ? ElementType::kByte : ElementType::kInt);
    saved_[{id, piece}] = buffer;
    run.arguments.push_back({Role::kSaved, 0, writer_.whole(buffer)});
  }
  if (node.op->is_loss())
    run.arguments.push_back({Role::kLoss, 0, {writer_.program.loss, Box{step_numbers(*node.op)}}});
  else
    run.arguments.push_back({Role::kOutput, 0, {home(node.output, piece).buffer, box}});
  writer_.append(std::move(run));
}

void ValueWriter::recompute(ValueId value, int m) {
  if (!writer_.step.backward.recomputed[value] || again_[{value, m}]) return;
  const NodeId producer = writer_.graph.value(value).producer;
  if (!writer_.here.pieces(value, m).empty())
    for (ValueId input : writer_.graph.node(producer).inputs) recompute(input, m);
  again_[{value, m}] = true;
  forget(value, m);
  make_homes(value, m);
  run_forward(producer, m, Phase::kRecompute);
  start_giving(value, m);
  copy_to_readers(value, m);
}

/// Forgets the value's buffers of a micro-batch.
void ValueWriter::forget(ValueId value, int m) {
  for (int piece : writer_.here.pieces(value, m)) instances_[value].homes.erase(piece);
  for (size_t g = 0; g < instances_[value].groups.size(); ++g)
    for (int need : writer_.here.needs(value, static_cast<int>(g), m))
      instances_[value].groups[g].erase(need);
}

View ValueWriter::home(ValueId value, int piece) const {
  return {instances_[value].homes.at(piece), writer_.placed.values[value].layout.piece(piece).box};
}

View ValueWriter::input(NodeId id, int input, int piece) const {
  return this->input(id, input, piece, writer_.placed.output_layout(id).piece(piece).box);
}

View ValueWriter::input(NodeId id, int input, int piece, const Box& out) const {
  const PlacedGraph& placed = writer_.placed;
  const Node& node = writer_.graph.node(id);
  const Instance& instance = instances_[node.inputs[input]];
  if (placed.needed(id, input, piece).empty()) return {-1, placed.needed(id, input, piece)};
  const Box needed = node.op->needed(input, out, node.types);
  if (needed.empty()) return {-1, needed};
  if (const int group = placed.group_of(id, input); group >= 0)
    return {instance.groups[group].at(piece), needed};
  return {instance.homes.at(placed.home_piece(id, input, piece)), needed};
}

BufferId ValueWriter::saved(NodeId node, int piece) const {
  const auto found = saved_.find({node, piece});
  return found == saved_.end() ? -1 : found->second;
}

}  // namespace tessera

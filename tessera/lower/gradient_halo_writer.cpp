#include "tessera/lower/gradient_halo_writer.h"

#include <algorithm>

namespace tessera {

BufferId GradientHaloWriter::add_home(ValueId value, int piece) {
  const ValuePlan& plan = writer_.placed.values[value];
  const NodeId producer = writer_.graph.value(value).producer;
  const bool has_halo = producer >= 0 && writer_.step.gathers_gradient(producer);
  const BufferId home = writer_.add_buffer(
      writer_.graph.value(value).name + " gradient", BufferKind::kGradient,
      has_halo ? plan.gradient_halo.needs[piece].box : plan.layout.piece(piece).box,
      writer_.element_of_gradient(value));
  if (has_halo) homes_.insert(home);
  return home;
}

std::vector<ValueId> GradientHaloWriter::written_by(NodeId id) const {
  const Node& node = writer_.graph.node(id);
  const auto gives_gradient = [&](const Use& use) {
    return writer_.step.passes_gradient(use.node, use.input);
  };
  std::vector<ValueId> values;
  for (int input = 0; input < std::ssize(node.inputs); ++input) {
    const Value& value = writer_.graph.value(node.inputs[input]);
    if (value.producer >= 0 && writer_.step.gathers_gradient(value.producer) &&
        gives_gradient({id, input}) && writer_.step.gradient_group(id, input) < 0 &&
        std::ranges::count_if(value.uses, gives_gradient) == 1)
      values.push_back(node.inputs[input]);
  }
  return values;
}

void GradientHaloWriter::start(ValueId value, int m, const std::function<BufferId(int)>& home) {
  if (started_.contains({value, m})) return;
  for (int piece : writer_.here.pieces(value, m))
    with_halo_[{value, piece}] = make_room(value, piece, home(piece));
  const int rank = writer_.here.rank();
  Exchange exchange;
  exchange.sends = ExchangeWriter::route(
      writer_.here.gradient_moves(value, m),
      [&](const Move& move) { return move.from == rank ? move.to : -1; },
      [&](const Move& move) {
        return View{with_halo_.at({value, move.source_piece}), move.box};
      });
  exchange.receives = received(value, m);
  exchanges_.add_strips(writer_.graph.value(value).name + " gradient",
                        writer_.element_of_gradient(value), &exchange);
  exchanges_.start(writer_.placed.values[value].gradient_halo.channel_of(m), exchange, true);
  started_[{value, m}] = std::move(exchange);
}

void GradientHaloWriter::finish(ValueId value, int m) {
  const Exchange& exchange = started_.at({value, m});
  exchanges_.finish(writer_.placed.values[value].gradient_halo.channel_of(m), exchange);
  exchanges_.unpack(exchange, received(value, m),
                    std::vector<bool>(exchange.receives.size(), false), Combine::kStore);
  for (const Move& move : writer_.here.gradient_moves(value, m))
    if (move.from == move.to && move.source_piece != move.need)
      writer_.append(Copy{{with_halo_.at({value, move.source_piece}), move.box},
                          {with_halo_.at({value, move.need}), move.box},
                          Combine::kStore});
}

BufferId GradientHaloWriter::buffer(ValueId value, int piece) const {
  const auto found = with_halo_.find({value, piece});
  return found == with_halo_.end() ? -1 : found->second;
}

/// The home, if it has been made with room; else a counted copy.
BufferId GradientHaloWriter::make_room(ValueId value, int piece, BufferId home) {
  if (homes_.contains(home)) return home;
  const ValuePlan& plan = writer_.placed.values[value];
  const Box& box = plan.layout.piece(piece).box;
  const BufferId buffer = writer_.add_buffer(
      writer_.graph.value(value).name + " gradient with halo", BufferKind::kGradient,
      plan.gradient_halo.needs[piece].box, writer_.element_of_gradient(value));
  writer_.append(Copy{{home, box}, {buffer, box}, Combine::kStore});
  return buffer;
}

std::vector<Message> GradientHaloWriter::received(ValueId value, int m) const {
  const int rank = writer_.here.rank();
  return ExchangeWriter::route(
      writer_.here.gradient_moves(value, m),
      [&](const Move& move) { return move.to == rank ? move.from : -1; },
      [&](const Move& move) {
        return View{with_halo_.at({value, move.need}), move.box};
      });
}

}  // namespace tessera

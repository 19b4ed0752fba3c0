#include "tessera/proof/step_on_ranks.h"

#include <array>

#include "tessera/base/error.h"
#include "tessera/comm/outstanding.h"
#include "tessera/graph/gradient_flow.h"
#include "tessera/graph/number_type.h"

namespace tessera {
namespace {

constexpr const char* kWhat = "a comparison with the oracle";

void receive(Transport& transport, int from, void* data, int64_t bytes) {
  Outstanding(transport, {.sends = {}, .receives = {{from, data, bytes}}}, kWhat).finish();
}

at::Tensor receive_tensor(Transport& transport, int from, const Shape& shape, at::ScalarType real) {
  at::Tensor tensor = at::empty(shape, real);
  receive(transport, from, tensor.data_ptr(), static_cast<int64_t>(tensor.nbytes()));
  return tensor;
}

void send(Transport& transport, const void* data, int64_t bytes) {
  Outstanding(transport, {.sends = {{0, data, bytes}}, .receives = {}}, kWhat).finish();
}

void send_tensor(Transport& transport, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.cpu().contiguous();
  send(transport, dense.data_ptr(), static_cast<int64_t>(dense.nbytes()));
}

/// Boxes as a message: how many, then both ends of each range.
using Ends = std::array<int64_t, 2 * Box::kMaxAxes>;

std::vector<Box> receive_boxes(Transport& transport, int from, int num_axes) {
  int64_t count = 0;
  receive(transport, from, &count, sizeof(count));
  std::vector<Ends> ends(count);
  receive(transport, from, ends.data(), count * static_cast<int64_t>(sizeof(Ends)));
  std::vector<Box> boxes(count);
  for (int64_t i = 0; i < count; ++i)
    for (int axis = 0; axis < num_axes; ++axis)
      boxes[i].push_back({ends[i][2 * axis], ends[i][2 * axis + 1]});
  return boxes;
}

void send_boxes(Transport& transport, const std::vector<Box>& boxes) {
  const auto count = static_cast<int64_t>(boxes.size());
  send(transport, &count, sizeof(count));
  std::vector<Ends> ends(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i)
    for (int axis = 0; axis < boxes[i].num_axes(); ++axis) {
      ends[i][2 * axis] = boxes[i][axis].begin;
      ends[i][2 * axis + 1] = boxes[i][axis].end;
    }
  send(transport, ends.data(), count * static_cast<int64_t>(sizeof(Ends)));
}

std::vector<Operand> own_pieces(RankSession& session, const std::vector<Result>& results,
                                ValueId id) {
  std::vector<Operand> pieces;
  for (const Result& result : results)
    if (result.value == id) {
      const at::Tensor piece = session.executor().result(result);
      pieces.push_back({piece.to(wide(piece.scalar_type())), result.view.box});
    }
  return pieces;
}

void send_pieces(RankSession& session, const std::vector<Result>& results, ValueId id) {
  const std::vector<Operand> pieces = own_pieces(session, results, id);
  std::vector<Box> boxes;
  for (const Operand& piece : pieces) boxes.push_back(piece.box);
  send_boxes(session.transport(), boxes);
  for (const Operand& piece : pieces) send_tensor(session.transport(), piece.tensor);
}

/// One value, piece by piece.
class ValueComparison {
 public:
  explicit ValueComparison(const at::Tensor& reference)
      : reference_{reference, Box::whole(reference.sizes().vec())},
        owners_(at::zeros(reference.sizes(), at::kByte)) {}

  void add(const Operand& piece) {
    deviation_.add(piece.tensor, reference_.view(piece.box));
    Operand{owners_, reference_.box}.view(piece.box).add_(1);
  }

  Deviation finish() const {
    TESSERA_CHECK(owners_.eq(1).all().item<bool>(), "an element has no owner, or two");
    return deviation_;
  }

 private:
  const Operand reference_;
  const at::Tensor owners_;  // how many each element has
  Deviation deviation_;
};

Deviation compare_value(RankSession& session, const std::vector<Result>& results, ValueId id,
                        const at::Tensor& reference) {
  Transport& transport = session.transport();
  ValueComparison comparison(reference);
  for (const Operand& piece : own_pieces(session, results, id)) comparison.add(piece);
  for (int rank = 1; rank < transport.size(); ++rank)
    for (const Box& box : receive_boxes(transport, rank, static_cast<int>(reference.dim())))
      comparison.add({receive_tensor(transport, rank, box.shape(), reference.scalar_type()), box});
  return comparison.finish();
}

/// Rank 0 where it holds the parameter: all holders have the same bits.
int giver(const Members& holders) { return holders.front() == 0 ? 0 : holders.back(); }

/// What the oracle has a tensor for: the lists of StepTensors, as both sides know them.
bool is_compared(const Graph& graph, ValueId id) {
  return graph.type(id).element == Element::kReal;
}
bool has_gradient(const Parameter& parameter) {
  return parameter.role == ParameterRole::kTrainable;
}

}  // namespace

void send_step(RankSession& session, const Lowering& lowering) {
  const Graph& graph = lowering.graph();
  const int rank = session.transport().rank();
  const std::vector<bool> with_gradient = feeds_loss(graph);
  for (ValueId id : graph.outputs())
    if (is_compared(graph, id)) send_pieces(session, session.program().outputs, id);
  for (ValueId id : graph.inputs())
    if (is_compared(graph, id) && with_gradient[id])
      send_pieces(session, session.program().input_gradients, id);
  for (size_t id = 0; id < graph.parameters().size(); ++id)
    if (has_gradient(graph.parameters()[id]) && giver(lowering.holders()[id]) == rank)
      send_tensor(session.transport(), session.parameters().gradients()[id]);
  for (size_t id = 0; id < graph.parameters().size(); ++id)
    if (giver(lowering.holders()[id]) == rank)
      send_tensor(session.transport(), session.parameters().values()[id]);
}

StepComparison compare_step(RankSession& session, const Lowering& lowering, StepTensors reference,
                            const KeptTensors& kept) {
  const Graph& graph = lowering.graph();
  const auto value = [&](const std::vector<Result>& results, const std::vector<ValueId>& ids) {
    return [&](size_t i, const at::Tensor& expected) {
      return compare_value(session, results, ids[i], expected);
    };
  };
  const auto parameter = [&](const std::vector<at::Tensor>& own, std::vector<at::Tensor>* keep) {
    if (keep != nullptr) keep->assign(graph.parameters().size(), {});
    return [&, keep](size_t id, const at::Tensor& expected) {
      const int from = giver(lowering.holders()[id]);
      const at::Tensor ours = from == 0
                                  ? own[id].cpu()
                                  : receive_tensor(session.transport(), from,
                                                   expected.sizes().vec(), expected.scalar_type());
      if (keep != nullptr) (*keep)[id] = from == 0 ? ours.clone() : ours;
      Deviation deviation;
      deviation.add(ours, expected);
      return deviation;
    };
  };
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (!is_compared(graph, graph.outputs()[i])) reference.outputs[i].reset();
  const Program& program = session.program();
  return {graph, std::move(reference),
          StepComparison::Source{session.executor().loss(), session.executor().measured(),
                                 value(program.outputs, graph.outputs()),
                                 value(program.input_gradients, graph.inputs()),
                                 parameter(session.parameters().gradients(), kept.gradients),
                                 parameter(session.parameters().values(), kept.parameters)}};
}

}  // namespace tessera

#pragma once
// What one rank does in one step, as a flat list of instructions, of a few plain kinds, with
// explicit buffers. The executor runs it, the simulator walks it, the checker proves it. Everything
// here is data: printable, comparable, testable without running.
//
// Buffers cover boxes of values in global coordinates, margins included; a View is a part of a
// buffer by its box. So "the interior of the buffer that conv2 reads" is {buffer, the piece's box}.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tessera/geometry/box.h"
#include "tessera/graph/graph.h"
#include "tessera/graph/op.h"
#include "tessera/lower/schedule.h"
#include "tessera/plan/plan.h"

namespace tessera {

using BufferId = int;

enum class BufferKind {
  kValue,       // an activation, or the copy of one with margins for a consumer
  kGradient,    // of a value
  kStrip,       // packed boxes on their way between two ranks
  kStatistics,  // gathered or merged statistics
  kSaved,       // what forward leaves for backward besides values
  kLoss,
  kBucket,  // gradients of parameters; lives as long as the parameters, not counted as value bytes
};

enum class ElementType { kReal, kIndex, kDouble, kByte, kInt };

/// How the elements of a dense buffer lie in memory. Kernels are given what they ask for; users
/// never see it. The CPU path uses kContiguous.
enum class DenseLayout { kContiguous, kChannelsLast };

struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::kValue;
  Box box;       // what it covers, margins included
  Box interior;  // the part that its rank owns; the rest is halo, or fill outside the image
  ElementType element = ElementType::kReal;
  DenseLayout layout = DenseLayout::kContiguous;
  bool adopted = false;  // a kernel returns it; Alloc only counts
};

int64_t element_bytes(ElementType element, at::ScalarType real);
int64_t buffer_bytes(const Buffer& buffer, at::ScalarType real);

struct View {
  BufferId buffer = -1;
  Box box;
  bool operator==(const View&) const = default;
};

enum class Role {
  kInput,
  kOutput,
  kGradOutput,
  kGradInput,
  kSaved,
  kPieceStatistics,
  kMergedStatistics,
  kPieceGradStatistics,
  kMergedGradStatistics,
  kGathered,
  kLoss,
};

struct Argument {
  Role role = Role::kInput;
  int index = 0;  // which input
  View view;
};

enum class Combine { kStore, kAdd };

/// Part of a strip: the elements of `view`, row major, from element `offset` on.
struct Segment {
  View view;
  int64_t offset = 0;
};

/// All that goes to, or comes from, one peer in one transfer.
struct Message {
  int peer = 0;
  BufferId strip = -1;
  std::vector<Segment> segments;
};

// The instructions. `channel` pairs a Start with its Finish and is the same number on all ranks.

struct Alloc {
  BufferId buffer = -1;
};
struct Free {
  BufferId buffer = -1;
};
/// Writes zeros.
struct Fill {
  BufferId buffer = -1;
  std::vector<Box> boxes;
};
struct Copy {
  View from;
  View to;
  Combine combine = Combine::kStore;
};
/// Reads the piece of a graph input from the data source.
struct Load {
  ValueId value = -1;
  View to;
};
struct Run {
  NodeId node = -1;
  Phase phase = Phase::kForward;
  int piece = -1;          // of the node's output; -1: once a rank
  std::vector<Box> boxes;  // the piece's box; for a merge, those of all pieces that were gathered
  std::vector<Argument> arguments;
};
/// Packs the sends, posts sends and receives; does not wait.
struct StartTransfer {
  int channel = -1;
  std::vector<Message> sends;
  std::vector<Message> receives;
};
/// Waits until the strips have moved.
struct FinishTransfer {
  int channel = -1;
  std::vector<BufferId> strips;
};
/// Puts received strips into their places; repeated after a recomputation.
struct Unpack {
  std::vector<Message> messages;
  Combine combine = Combine::kStore;
};
/// Sums a whole buffer over the members, in place.
struct StartReduce {
  int channel = -1;
  BufferId buffer = -1;
  Members members;
};
struct FinishReduce {
  int channel = -1;
  BufferId buffer = -1;
  Members members;
};
/// Gathers the rows of a statistics buffer from all members; members[i] owns rows[i] rows, in that
/// order.
struct StartGather {
  int channel = -1;
  BufferId buffer = -1;
  Members members;
  std::vector<int64_t> rows;
};
struct FinishGather {
  int channel = -1;
  BufferId buffer = -1;
};
/// The optimiser's step.
struct Update {};

/// Does nothing: what follows, up to the next one, belongs to a task, which traces and timelines
/// show.
struct Enter {
  enum class Part { kSetUp, kTask, kFinish };
  Part part = Part::kTask;
  Task task;      // of kTask
  int stage = 0;  // whose part of the network it is; GEMS runs it elsewhere, too
};

using Instruction =
    std::variant<Alloc, Free, Fill, Copy, Load, Run, StartTransfer, FinishTransfer, Unpack,
                 StartReduce, FinishReduce, StartGather, FinishGather, Update, Enter>;

/// Gradients of these parameters lie one after the other in one buffer, reduced as one over the
/// ranks that hold them.
struct Bucket {
  BufferId buffer = -1;
  Members holders;
  std::vector<ParameterId> parameters;
  std::vector<int64_t> offsets;  // elements
};

/// A part of a result that stays after the step.
struct Result {
  ValueId value = -1;
  View view;
};

struct Program {
  int rank = 0;
  int num_ranks = 1;
  std::vector<Buffer> buffers;
  std::vector<Instruction> instructions;
  std::vector<ParameterId> parameters;  // that this rank holds, ascending
  std::vector<Bucket> buckets;
  BufferId loss = -1;
  std::vector<Result> outputs;          // of Graph::outputs()
  std::vector<Result> input_gradients;  // where asked for
};

/// Buffers that an instruction reads or writes.
std::vector<BufferId> touched_buffers(const Instruction& instruction);

std::string to_string(const Program& program, const Graph& graph);
std::string to_string(const Instruction& instruction, const Program& program, const Graph& graph);

}  // namespace tessera

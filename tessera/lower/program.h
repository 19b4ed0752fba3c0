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
  kStatistics,  // of pieces, combined or merged
  kSaved,       // what forward leaves for backward besides values
  kScratch,     // what a kernel needs while it runs
  kReduction,   // what a reduction receives
  kBucket,      // gradients of parameters; they stay after the step
  kLoss,        // and the gradient's norm: numbers that stay after the step
  // These live as long as the parameters:
  kWeight,             // a parameter, or running statistics
  kAccumulatedBucket,  // gradients to which several steps add
  kOptimiserState,     // laid out as a bucket
};

/// Whether it is there before the step and after it; what comes and goes has Alloc and Free.
inline bool is_permanent(BufferKind kind) { return kind >= BufferKind::kWeight; }

enum class ElementType {
  kReal,  // of the run
  kWide,  // the same, or float32 where the run's is narrow (graph/number_type.h)
  kIndex,
  kDouble,
  kByte,
  kInt
};

/// Which memory a buffer lies in.
enum class Tier { kDevice, kHost, kFile };
const char* to_string(Tier tier);

/// Which queue of the device an instruction runs on. Those of one stream run in their order; what
/// must wait for another stream follows from the buffers. A CPU's streams are always up to date.
enum class Stream { kCompute, kCommunication, kCopy };
const char* to_string(Stream stream);

struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::kValue;
  Box box;  // what it covers, margins included
  ElementType element = ElementType::kReal;
  Tier tier = Tier::kDevice;
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
  kWeight,      // index: which of the node's parameters
  kGradWeight,  // of that parameter: a view of a bucket, or of scratch where it is frozen
  kRunning,     // index: which of the node's buffers (running statistics)
  kSaved,
  kScratch,
  kPieceStatistics,
  kMergedStatistics,
  kPieceGradStatistics,
  kMergedGradStatistics,
  kRow,       // index: which of the rows that are combined
  kCombined,  // ... into this one
  kLoss,
};

struct Argument {
  Role role = Role::kInput;
  int index = 0;  // which input, parameter, buffer or row
  View view;
};
/// Whether a kernel writes an argument of this role.
bool is_written(Phase phase, Role role);

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
  Stream stream = Stream::kCompute;
};
struct Free {
  BufferId buffer = -1;
  Stream stream = Stream::kCompute;
};
/// Writes zeros.
struct Fill {
  BufferId buffer = -1;
  std::vector<Box> boxes;
  Stream stream = Stream::kCompute;
};
struct Copy {
  View from;
  View to;
  Combine combine = Combine::kStore;
  Stream stream = Stream::kCompute;
};
/// Reads the piece of a graph input from the data source.
struct Load {
  ValueId value = -1;
  View to;
  Stream stream = Stream::kCopy;
};
struct Run {
  NodeId node = -1;
  Phase phase = Phase::kForward;
  int piece = -1;  // of the node's output; -1: once a rank
  Box box;         // of the piece, or a part of it; none for what runs once a rank
  std::vector<Argument> arguments;
  Stream stream = Stream::kCompute;
};
/// Packs the sends, posts sends and receives; does not wait.
struct StartTransfer {
  int channel = -1;
  std::vector<Message> sends;
  std::vector<Message> receives;
  Stream stream = Stream::kCommunication;
};
/// Waits until the strips have moved.
struct FinishTransfer {
  int channel = -1;
  std::vector<BufferId> strips;
  Stream stream = Stream::kCommunication;
};
/// Puts received strips into their places; repeated after a recomputation.
struct Unpack {
  std::vector<Message> messages;
  Combine combine = Combine::kStore;
  Stream stream = Stream::kCompute;
};
/// Sums a whole buffer over the members, in place. What arrives waits in `received`.
struct StartReduce {
  int channel = -1;
  BufferId buffer = -1;
  BufferId received = -1;
  Members members;
  Stream stream = Stream::kCommunication;
};
/// Waits for a round of messages of it, and posts the next.
struct AdvanceReduce {
  int channel = -1;
  BufferId buffer = -1;
  BufferId received = -1;
  Members members;
  int round = 1;  // that it posts
  Stream stream = Stream::kCommunication;
};
/// Waits for what was posted, and does the rest of the rounds.
struct FinishReduce {
  int channel = -1;
  BufferId buffer = -1;
  BufferId received = -1;
  Members members;
  int posted = 1;  // rounds before it
  Stream stream = Stream::kCommunication;
};
/// Multiplies whole buffers: gradients that were accumulated become their mean.
struct ScaleGradients {
  std::vector<BufferId> buffers;
  double factor = 1;
  Stream stream = Stream::kCompute;
};
/// A gradient, and where its sum of squares goes.
struct Square {
  View gradient;
  int64_t index = 0;
};
/// Computes a derived weight, and updates buffers on the way where the step trains.
struct Derive {
  int derivation = -1;  // of the graph
  std::vector<BufferId> sources;
  BufferId result = -1;
  std::vector<BufferId> updated;  // of the sources
  bool trains = false;            // what its gradient needs is kept until DeriveGradients
  Stream stream = Stream::kCompute;
};
/// Adds to the gradients of its sources what that of a derived weight makes of them.
struct DeriveGradients {
  int derivation = -1;
  View gradient;                // of the derived weight
  std::vector<View> gradients;  // of the sources; of no buffer where one is not trained
  Stream stream = Stream::kCompute;
};
/// Writes sums of squares, and zero where this rank has none: each parameter is counted once.
struct SquareGradients {
  std::vector<Square> gradients;
  BufferId squares = -1;
  Stream stream = Stream::kCompute;
};
/// Writes the norm of all gradients, the root of the sum of `squares`, and shortens the gradients
/// to `max_norm` where they are longer (0: no limit).
struct Clip {
  BufferId squares = -1;
  BufferId norm = -1;
  std::vector<BufferId> buckets;
  double max_norm = 0;
  Stream stream = Stream::kCompute;
};
/// The optimiser's step, which is left out where the loss or the norm is not a finite number.
struct Update {
  BufferId loss = -1;  // -1: none
  BufferId norm = -1;
  std::vector<BufferId> weights;
  std::vector<BufferId> buckets;
  std::vector<BufferId> state;
  Stream stream = Stream::kCompute;
};

/// Does nothing: what follows, up to the next one, belongs to a task, which traces and timelines
/// show.
struct Enter {
  enum class Part { kSetUp, kTask, kFinish };
  Part part = Part::kTask;
  Task task;      // of kTask
  int stage = 0;  // whose part of the network it is; GEMS runs it elsewhere, too
  Stream stream = Stream::kCompute;
};

using Instruction =
    std::variant<Alloc, Free, Fill, Copy, Load, Run, StartTransfer, FinishTransfer, Unpack,
                 StartReduce, AdvanceReduce, FinishReduce, Derive, DeriveGradients, ScaleGradients,
                 SquareGradients, Clip, Update, Enter>;

Stream stream_of(const Instruction& instruction);

/// Gradients of these parameters lie one after the other in one buffer, reduced as one over the
/// ranks that hold them. So does what the optimiser keeps of them.
struct Bucket {
  BufferId buffer = -1;
  Members holders;
  std::vector<ParameterId> parameters;
  std::vector<int64_t> offsets;  // elements
  std::vector<BufferId> state;   // copies of the optimiser
  BufferId counters = -1;        // its steps, one per parameter; -1: it does not count them
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
  std::vector<BufferId> weights;        // theirs
  std::vector<Bucket> buckets;
  BufferId loss = -1;
  BufferId norm = -1;                   // of the gradients, where the step updates
  std::vector<Result> outputs;          // of Graph::outputs()
  std::vector<Result> input_gradients;  // where asked for
};

/// Results, gradients, the loss and the norm: what stays when the step has ended, until the next.
std::vector<BufferId> kept_buffers(const Program& program);

/// Buffers that an instruction reads or writes.
std::vector<BufferId> touched_buffers(const Instruction& instruction);

std::string to_string(const Program& program, const Graph& graph);
std::string to_string(const Instruction& instruction, const Program& program, const Graph& graph);

}  // namespace tessera

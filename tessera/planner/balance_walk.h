#pragma once
// Predicts what one rank of a stage holds while one micro-batch passes through it: the lowering's
// rules of which buffer lives from when to when, applied to sizes alone. It knows nothing of other
// micro-batches or of the time that passes between the stage's tasks; balance_flight.h adds those.

#include <vector>

#include "tessera/planner/balance_lives.h"
#include "tessera/planner/balance_rank_graph.h"

namespace tessera {

/// Nodes [begin, end) of a RankGraph.
struct NodeRange {
  NodeId begin = 0;
  NodeId end = 0;
};

/// Something that another stage sends, and that a rank holds from then on.
struct Arrival {
  NodeId from = -1;  // the node whose forward, or backward, sends it
  int task = 0;      // of this stage, that uses it
  double bytes = 0;
};

/// The tasks of a stage with k parts are k forwards and k backwards; task 2k - 1 - i is the
/// backward of task i.
struct StageProfile {
  double fixed_bytes = 0;            // parameters, and the targets of all micro-batches
  std::vector<double> peak;          // per task: the most bytes of this micro-batch
  std::vector<double> level;         // per task: what is left of them when it has ended
  std::vector<Arrival> arrivals;     // counted above from the start of the task that uses them
  std::vector<double> weight_bytes;  // per part: of those, what only its weight gradients wait for
};

/// Can be used again and again; it keeps its working memory.
class StageWalk {
 public:
  enum class Weights { kInBackward, kApart };
  StageWalk(const RankGraph& graph, int64_t micro_batches, Weights weights);

  /// `parts` are ascending and disjoint. The reference is good until the next call.
  const StageProfile& profile(const std::vector<NodeRange>& parts);

 private:
  struct ValueState {
    int home_group = -1;  // whose buffer is the home of the piece; -1: not asked yet
    bool is_recomputed = false;
    Slot gradient = -1;
    double gradient_bytes = 0;
  };
  struct GroupState {
    bool has_arrived = false;
    bool is_unpacked = false;
    Slot gradient = -1;
    int pending_readings = 0;
  };
  enum ValueSlot { kHome, kHomeAgain, kGradientHome, kDenseGradient, kSaved, kValueSlots };
  enum GroupSlot {
    kBuffer,
    kBufferAgain,
    kStrip,
    kSentStrip,
    kGradient,
    kGradientPart,
    kGradientStrip,
    kSentGradientStrip,
    kGroupSlots
  };

  // The frame.
  void forget_last();
  void enter(const std::vector<NodeRange>& parts);
  void add_fixed_bytes(NodeId node);
  void end_task();
  void split_off_weights();
  void send(Slot slot, double bytes);
  void touch_sent();
  bool is_made_here(ValueId value) const { return is_here_[graph_.values[value].origin]; }

  // Forward.
  void forward_task(const NodeRange& part, int task);
  void receive_input(const RankReading& reading, int task);
  void load_inputs(NodeId node);
  void forward(NodeId node);
  void make_groups(ValueId value, bool again);
  void send_value(ValueId value, int group);
  void unpack(ValueId value, int group);

  // Backward. Gradients are sums over readings; the first contribution is where others are added.
  void backward_task(const NodeRange& part, int task);
  void receive_gradients(NodeId node, int task);
  void weight_task(const NodeRange& part);
  void recompute(ValueId value);
  void backward(NodeId node);
  void weight_gradient(NodeId node);
  void complete_gradient(NodeId node);
  void touch_backward_arguments(NodeId node);
  void write_input_gradient(const RankReading& reading);
  void complete_group(ValueId value, int group);
  void add_to_gradient(ValueId value, Slot part, double part_bytes);
  void touch_gradient(ValueId value);

  // Buffers.
  Slot value_slot(ValueId value, ValueSlot slot) const { return first_slot_[value] + slot; }
  Slot group_slot(ValueId value, int group, GroupSlot slot) const {
    return first_slot_[value] + kValueSlots + group * kGroupSlots + slot;
  }
  GroupState& state(ValueId value, int group) { return groups_[first_group_[value] + group]; }
  int home_group(ValueId value);
  bool is_read_here(ValueId value, int group) const;
  bool is_read_elsewhere(ValueId value, int group) const;
  bool backward_reads(ValueId value, int group) const;
  NodeId gradient_sender(ValueId value, int group) const;
  template <class Predicate>
  bool has_reading(ValueId value, int group, Predicate predicate) const;
  void touch_home(ValueId value);
  void touch_input(const RankReading& reading) { touch_buffer(reading.value, reading.group); }
  void touch_buffer(ValueId value, int group);

  const RankGraph& graph_;
  const int64_t micro_batches_;
  const Weights weights_;
  std::vector<Slot> first_slot_;  // per value
  std::vector<int> first_group_;  // per value
  BufferLives lives_;

  std::vector<NodeRange> parts_;
  std::vector<bool> is_here_;  // per node
  std::vector<ValueState> values_;
  std::vector<GroupState> groups_;
  std::vector<std::pair<Slot, double>> sent_;  // by this task
  std::vector<int> parameter_counted_;         // per parameter: the last profile that did
  int num_profiles_ = 0;
  StageProfile result_;
};

}  // namespace tessera

#pragma once
// What the normalisations by planes (kernels/norm.h) share as operators: batch norm, and the norms
// of each sample. What follows one of them can become its tail, in the same pass each way:
//
//   x ──► norm ──► add ──► relu ──► y         x ──► norm_add_relu ──► y
//                   ▲                  becomes          ▲
//                 added                               added
//
// Backward reads x, and tells from the output what a ReLU after a sum let through; neither the sum
// nor the normalised value exists. Without a sum the output is recomputed where it is wanted, not
// kept. rewrite_passes.h has the passes.

#include <memory>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/kernels/norm.h"
#include "tessera/ops/norm/norm.h"

namespace tessera {

/// What a normalisation does besides: adds its second input, and then the activation.
struct NormTail {
  bool adds = false;
  NormActivation activation = NormActivation::kNone;

  bool operator==(const NormTail&) const = default;
};

class PlaneNormOp : public Op, public NormalisesChannels {
 public:
  const NormTail& tail() const { return tail_; }
  /// Whether it has no tail and can have one.
  bool can_add() const { return takes_tail() && tail_ == NormTail(); }
  /// Whether an activation can end it.
  bool can_activate() const { return takes_tail() && tail_.activation == NormActivation::kNone; }
  /// The same normalisation with another tail. With `adds`, nodes have a second input.
  std::shared_ptr<const Op> with_tail(const NormTail& tail) const;

  std::string kind() const final;
  ValueType infer_type(std::span<const ValueType> inputs) const final;
  Box needed(int, const Box& out, const NodeTypes&) const final { return out; }
  bool keeps_input(int input) const final { return input == 0; }
  bool keeps_output() const final {
    return tail_.adds && tail_.activation != NormActivation::kNone;
  }
  bool cheap_to_recompute() const final { return !tail_.adds; }
  bool statistics_read(int input) const final { return input == 0; }
  double flops(const Box& out, const NodeTypes& types) const final;

  at::Tensor reference(const ReferenceArgs& args) const final;
  std::optional<std::string> script(const ScriptArgs& args) const final;

 protected:
  explicit PlaneNormOp(const NormTail& tail = {}) : tail_(tail) {}

  virtual std::shared_ptr<PlaneNormOp> copy() const = 0;
  virtual bool takes_tail() const { return true; }
  // The same questions about the normalisation without its tail.
  virtual std::string norm_kind() const = 0;
  virtual void check_norm(const ValueType& input) const = 0;
  virtual double norm_flops_per_element() const = 0;
  virtual at::Tensor norm_reference(const ReferenceArgs& args) const = 0;
  virtual std::optional<std::string> norm_script(const ScriptArgs& args) const = 0;

  // Views of the piece; undefined where the tail has no use for them.
  at::Tensor added(const KernelArgs& args) const;
  at::Tensor kept_output(const KernelArgs& args) const;
  at::Tensor grad_added(const KernelArgs& args) const;
  /// Whether the gradient of x is wanted. Stores that of what was added where it is alone.
  bool wants_grad_x(const KernelArgs& args) const;

 private:
  NormTail tail_;
};

/// The operator as a normalisation by planes, or null.
const PlaneNormOp* plane_norm_op(const Op& op);

}  // namespace tessera

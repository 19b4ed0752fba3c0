#pragma once
// Puts values into the form that an operator needs, where the code has only looked at them in
// another way so far (view.h). What the code sees stays the same.

#include <optional>
#include <string>
#include <vector>

#include "tessera/import/recorded_builders.h"
#include "tessera/import/symbol.h"

namespace tessera {

/// Makes the tensor's value one whose axes are these digits of its view, each of them once. The
/// first axis is the batch, the second the channels. Digits of the value that the view does not
/// have any more are `summed`.
void arrange(Recording& graph, TensorSymbol& tensor, const std::vector<ViewDigits>& axes,
             const std::string& name, const ViewDigits& summed = {});

/// Why the tensor cannot be a value with the axes that the code sees; empty: it can.
std::string why_not_plain(const Recording& graph, const TensorSymbol& tensor);

/// The value with the axes that the code sees, which the tensor has from now on. `name` is that of
/// the nodes that it takes. The tensor is one for which there is no why_not_plain.
ValueId plain_value(Recording& graph, TensorSymbol& tensor, const std::string& name);

/// Makes all digits of an axis of the code the lowest ones of the channels; others stay channels or
/// become space. How many channels there are for each number in that axis is returned.
int64_t bring_to_channels(Recording& graph, TensorSymbol& tensor, int axis,
                          const std::string& name);

/// Makes an axis of the code the channels of the value, and all others batch and space.
void bring_alone_to_channels(Recording& graph, TensorSymbol& tensor, int axis,
                             const std::string& name);

/// The value of `small` with the axes of the value of `large`, each of them whole or 1, so that
/// broadcasting joins them as the code does; none where that cannot be.
std::optional<ValueId> conformed(Recording& graph, const TensorSymbol& small,
                                 const TensorSymbol& large, const std::string& name);

}  // namespace tessera

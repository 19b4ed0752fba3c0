#pragma once
// The PyTorch operators that Tessera takes, and what each becomes. One table per family; the page
// docs/models.md shows them all.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/import/call.h"

namespace tessera {

struct Operator {
  std::vector<std::string> names;  // "aten::conv2d"
  std::string becomes;             // for people: what it is here, and what is refused
  std::function<Symbols(Call&)> import;
};

std::vector<Operator> convolution_operators();
std::vector<Operator> matrix_operators();
std::vector<Operator> norm_operators();
std::vector<Operator> pointwise_operators();
std::vector<Operator> arithmetic_operators();
std::vector<Operator> pooling_operators();
std::vector<Operator> resize_operators();
std::vector<Operator> reduction_operators();
std::vector<Operator> shape_operators();
std::vector<Operator> made_operators();

// Operators on what is not a tensor of the network yet; none where no argument is such a thing, or
// the operator treats it as any other.

std::optional<Symbols> run_on_weights(Call& call);
std::optional<Symbols> run_on_made(Call& call);
std::optional<Symbols> run_on_indices(Call& call);

/// Writes the numbers of small made tensors out, one by one, where an operator needs them so;
/// whether there was one.
bool write_out_numbers(const std::vector<Symbol>& arguments);

struct OperatorFamily {
  std::string title;
  bool in_place = false;  // each "aten::relu" has a form "aten::relu_"
  std::vector<Operator> operators;
};
const std::vector<OperatorFamily>& operator_families();

/// Null where Tessera does not have it.
const Operator* find_operator(const std::string& name);

/// What to do about an operator that is not there.
std::string remedy_for(const std::string& name);

}  // namespace tessera

#include "tessera/import/operators.h"

#include <fmt/format.h>

#include <map>

#include "tessera/import/import.h"

namespace tessera {
namespace {

std::map<std::string, const Operator*> index_by_name() {
  std::map<std::string, const Operator*> index;
  for (const OperatorFamily& family : operator_families())
    for (const Operator& op : family.operators)
      for (const std::string& name : op.names) {
        index[name] = &op;
        if (family.in_place) index.emplace(name + "_", &op);
      }
  return index;
}

struct Remedy {
  const char* part;  // of the operator's name
  const char* words;
};

constexpr Remedy kRemedies[] = {
    {"rand", "random numbers in forward() have no single-device meaning; use nn.Dropout"},
    {"bernoulli",
     "random numbers in forward() have no single-device meaning; use nn.Dropout, or "
     "x.new_empty(shape).bernoulli_(p) for a mask"},
    {"lstm", "recurrent layers are not supported; use convolutions"},
    {"gru", "recurrent layers are not supported; use convolutions"},
    {"quant", "load the float model; Tessera trains float32 and float64"},
    {"_native_multi_head_attention",
     "it is the fast path of nn.MultiheadAttention in eval mode, which has no gradient; export the "
     "model without torch.no_grad()"},
    {"_transformer_encoder_layer_fwd",
     "it is the fast path of nn.TransformerEncoderLayer in eval mode, which has no gradient; "
     "export "
     "the model without torch.no_grad()"},
    {"tril",
     "torch.nn.utils.parametrizations.orthogonal computes weights with it, which Tessera does not; "
     "take it off with torch.nn.utils.parametrize.remove_parametrizations"},
    {"index_put", "write the parts with torch.cat instead of assigning to slices"},
    {"copy", "write the parts with torch.cat instead of assigning to slices"},
    {"index", "select with slices; indexing by a tensor depends on the data"},
    {"argmax", "leave it out of forward(); `tessera predict` gives the classes"},
    {"aten::Float",
     "it asks for the number of training steps so far (nn.BatchNorm2d(momentum=None) does); give "
     "momentum a number"},
    {"aten::gt",
     "it compares data; let branches depend on shapes or attributes, and use relu or clamp"},
    {"aten::lt",
     "it compares data; let branches depend on shapes or attributes, and use relu or clamp"},
    {"aten::ge",
     "it compares data; let branches depend on shapes or attributes, and use relu or clamp"},
    {"aten::le",
     "it compares data; let branches depend on shapes or attributes, and use relu or clamp"},
    {"fork", "write the branches one after the other; Tessera runs them in parallel by placement"},
};

}  // namespace

const std::vector<OperatorFamily>& operator_families() {
  static const std::vector<OperatorFamily> families{
      {"Convolution and linear layers", false, convolution_operators()},
      {"Matrix products", false, matrix_operators()},
      {"Normalisation", true, norm_operators()},
      {"Activations and other functions of one element", true, pointwise_operators()},
      {"Arithmetic", true, arithmetic_operators()},
      {"Pooling", false, pooling_operators()},
      {"Resizing and padding", false, resize_operators()},
      {"Sums, means and maxima", false, reduction_operators()},
      {"Shapes, slices and concatenation", false, shape_operators()},
      {"Tensors that the code makes", false, made_operators()}};
  return families;
}

const Operator* find_operator(const std::string& name) {
  static const std::map<std::string, const Operator*> index = index_by_name();
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

std::string operator_table() {
  std::string table;
  for (const OperatorFamily& family : operator_families()) {
    table += fmt::format("{}### {}\n\n| PyTorch | here |\n|---|---|\n", table.empty() ? "" : "\n",
                         family.title);
    for (const Operator& op : family.operators) {
      std::string names;
      for (const std::string& name : op.names)
        names += fmt::format("{}`{}`", names.empty() ? "" : ", ", name);
      table += fmt::format("| {} | {} |\n", names, op.becomes);
    }
  }
  return table;
}

std::string remedy_for(const std::string& name) {
  for (const Remedy& remedy : kRemedies)
    if (name.find(remedy.part) != std::string::npos) return remedy.words;
  return "`tessera models --operators` and docs/models.md list what is";
}

}  // namespace tessera

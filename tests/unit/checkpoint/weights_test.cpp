#include "tessera/checkpoint/weights.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/checkpoint/safetensors.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::weights_test {
namespace {

Graph small_graph() {
  Graph graph;
  graph.add_parameter({"conv.weight", {4, 3, 3, 3}, ParameterRole::kTrainable, {}});
  graph.add_parameter({"conv.bias", {4}, ParameterRole::kTrainable, {}});
  graph.add_parameter({"norm.running_mean", {4}, ParameterRole::kBuffer, {}});
  return graph;
}

std::vector<at::Tensor> values_of(const Graph& graph, at::ScalarType type) {
  std::vector<at::Tensor> values;
  for (const Parameter& parameter : graph.parameters())
    values.push_back(at::randn(parameter.shape, at::kDouble).to(type));
  return values;
}

TEST(Weights, ComeBackAsTheyWere) {
  const ScratchFolder folder;
  const Graph graph = small_graph();
  const auto saved = values_of(graph, at::kDouble);
  save_weights(folder.file("w"), graph, saved);
  auto loaded = values_of(graph, at::kDouble);
  loaded[0].set_requires_grad(true);
  const void* storage = loaded[0].data_ptr();
  load_weights(folder.file("w"), graph, loaded);
  EXPECT_EQ(loaded[0].data_ptr(), storage);  // others may hold views of it
  for (size_t i = 0; i < saved.size(); ++i) EXPECT_TRUE(loaded[i].equal(saved[i]));
  const SafetensorsFile file(folder.file("w"));
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  EXPECT_TRUE(file.contains("norm.running_mean"));
}

TEST(Weights, AreConvertedToTheTypeOfTheRun) {
  const ScratchFolder folder;
  const Graph graph = small_graph();
  for (at::ScalarType from : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble})
    for (at::ScalarType to : {at::kFloat, at::kDouble}) {
      const auto saved = values_of(graph, from);
      save_weights(folder.file("w"), graph, saved);
      auto loaded = values_of(graph, to);
      load_weights(folder.file("w"), graph, loaded);
      EXPECT_EQ(loaded[0].scalar_type(), to);
      for (size_t i = 0; i < saved.size(); ++i) EXPECT_TRUE(loaded[i].equal(saved[i].to(to)));
    }
}

TEST(Weights, ThatFitAreTakenWhereOthersMayBeSkipped) {
  const ScratchFolder folder;
  const Graph graph = small_graph();
  write_safetensors(folder.file("w"), {{"conv.weight", at::ones({5, 3, 3, 3})},
                                       {"conv.bias", at::ones({4})},
                                       {"head.scale", at::ones({})}});
  auto values = values_of(graph, at::kFloat);
  const at::Tensor weight = values[0].clone(), mean = values[2].clone();
  const auto skipped = load_fitting_weights(folder.file("w"), graph, values);
  EXPECT_EQ(skipped,
            (std::vector<std::string>{"conv.weight is 5x3x3x3 there, the model has 4x3x3x3",
                                      "norm.running_mean (4) is missing",
                                      "head.scale (a single number) is not in the model"}));
  EXPECT_TRUE(values[0].equal(weight));
  EXPECT_TRUE(values[1].equal(at::ones({4})));
  EXPECT_TRUE(values[2].equal(mean));
  write_safetensors(folder.file("w"), {{"fc.weight", at::ones({5})}});
  expect_refusal([&] { load_fitting_weights(folder.file("w"), graph, values); },
                 "does not fit the model (4 differences)");
}

TEST(Weights, OfTorchSaveAreRefusedWithTheLineThatConvertsThem) {
  const ScratchFolder folder;
  const Graph graph = small_graph();
  auto values = values_of(graph, at::kFloat);
  for (const std::string& begin :
       {std::string("PK\x03\x04 an archive"), std::string("\x80\x02}q")}) {
    write_bytes(folder.file("w.pth"), begin);
    const std::string message = refusal([&] { load_weights(folder.file("w.pth"), graph, values); });
    EXPECT_TRUE(has(message, "w.pth is a file of torch.save")) << message;
    EXPECT_TRUE(has(message, "s.save_file({k: v.clone() for k, v in torch.load('")) << message;
  }
  write_bytes(folder.file("w.pth"), "");
  EXPECT_FALSE(has(refusal([&] { load_weights(folder.file("w.pth"), graph, values); }), "torch"));
}

TEST(Weights, ThatDoNotFitAreListedAndNothingIsLoaded) {
  const ScratchFolder folder;
  const Graph graph = small_graph();
  write_safetensors(folder.file("w"), {{"conv.weight", at::ones({4, 3, 5, 5})},
                                       {"norm.running_mean", at::ones({4})},
                                       {"head.scale", at::ones({})}});
  auto values = values_of(graph, at::kFloat);
  const at::Tensor mean = values[2].clone();
  const std::string message = refusal([&] { load_weights(folder.file("w"), graph, values); });
  EXPECT_TRUE(has(message, folder.file("w"))) << message;
  EXPECT_TRUE(has(message, "3 differences")) << message;
  EXPECT_TRUE(has(message, "conv.weight is 4x3x5x5 there, the model has 4x3x3x3")) << message;
  EXPECT_TRUE(has(message, "conv.bias (4) is missing")) << message;
  EXPECT_TRUE(has(message, "head.scale (a single number) is not in the model")) << message;
  EXPECT_TRUE(values[2].equal(mean));
}

TEST(Weights, ALongListIsCut) {
  const ScratchFolder folder;
  NamedTensors tensors;
  for (int i = 0; i < 30; ++i)
    tensors.emplace_back(fmt::format("layer{:02}.weight", i), at::ones({1}));
  write_safetensors(folder.file("w"), tensors);
  std::vector<at::Tensor> none;
  const std::string message = refusal([&] { load_weights(folder.file("w"), Graph(), none); });
  EXPECT_TRUE(has(message, "layer09.weight")) << message;
  EXPECT_FALSE(has(message, "layer10.weight")) << message;
  EXPECT_TRUE(has(message, "and 20 more")) << message;
}

TEST(Weights, PyTorchsCountersArePassedOver) {
  const ScratchFolder folder;
  Graph graph;
  graph.add_parameter({"norm.weight", {2}, ParameterRole::kTrainable, {}});
  write_safetensors(folder.file("w"),
                    {{"norm.weight", at::ones({2})},
                     {"norm.num_batches_tracked", at::scalar_tensor(7, at::kLong)}});
  std::vector<at::Tensor> values{at::zeros({2})};
  load_weights(folder.file("w"), graph, values);
  EXPECT_TRUE(values[0].equal(at::ones({2})));
}

TEST(Weights, InceptionsAuxiliaryClassifierIsPassedOverByAModelWithoutOne) {
  const ScratchFolder folder;
  write_safetensors(folder.file("w"),
                    {{"fc.bias", at::ones({2})}, {"AuxLogits.fc.bias", at::full({2}, 3.0)}});
  Graph without, with;
  for (Graph* graph : {&without, &with})
    graph->add_parameter({"fc.bias", {2}, ParameterRole::kTrainable, {}});
  with.add_parameter({"AuxLogits.fc.bias", {2}, ParameterRole::kTrainable, {}});
  std::vector<at::Tensor> one{at::zeros({2})}, two{at::zeros({2}), at::zeros({2})};
  load_weights(folder.file("w"), without, one);
  load_weights(folder.file("w"), with, two);
  EXPECT_TRUE(one[0].equal(at::ones({2})));
  EXPECT_TRUE(two[0].equal(at::ones({2})));
  EXPECT_TRUE(two[1].equal(at::full({2}, 3.0)));
  with.add_parameter({"AuxLogits.fc.weight", {2, 4}, ParameterRole::kTrainable, {}});
  two.push_back(at::zeros({2, 4}));
  EXPECT_TRUE(has(refusal([&] { load_weights(folder.file("w"), with, two); }), "is missing"));
}

TEST(Weights, DenseNetsFirstNamesAreUnderstood) {
  const ScratchFolder folder;
  const std::string layer = "features.denseblock1.denselayer12.";
  Graph graph;
  for (const char* name : {"norm1.weight", "conv1.weight", "norm2.running_var", "conv2.weight"})
    graph.add_parameter({layer + name, {2}, ParameterRole::kTrainable, {}});
  const NamedTensors old{{layer + "norm.1.weight", at::full({2}, 1.0)},
                         {layer + "conv.1.weight", at::full({2}, 2.0)},
                         {layer + "norm.2.running_var", at::full({2}, 3.0)},
                         {layer + "conv.2.weight", at::full({2}, 4.0)},
                         {layer + "norm.2.num_batches_tracked", at::scalar_tensor(7, at::kLong)}};
  write_safetensors(folder.file("w"), old);
  std::vector<at::Tensor> values(4);
  for (at::Tensor& value : values) value = at::zeros({2});
  load_weights(folder.file("w"), graph, values);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(values[i].equal(at::full({2}, i + 1.0)));
  // Under both names, one is too many.
  NamedTensors both = old;
  both.emplace_back(layer + "conv2.weight", at::zeros({2}));
  write_safetensors(folder.file("w"), both);
  const std::string message = refusal([&] { load_weights(folder.file("w"), graph, values); });
  EXPECT_TRUE(has(message, "conv.2.weight (2) is not in the model")) << message;
}

/// A tied parameter has two names in PyTorch's state dict; constants of the code are not weights.
TEST(Weights, TiedNamesAndConstants) {
  const ScratchFolder folder;
  Graph graph;
  graph.add_parameter({"encode.weight", {2}, ParameterRole::kTrainable, {}});
  Parameter constant{"#constant1", {1}, ParameterRole::kFrozen, {}};
  constant.persistent = false;
  graph.add_parameter(constant);
  const std::map<std::string, std::string> ties{{"decode.weight", "encode.weight"}};
  std::vector<at::Tensor> values{at::full({2}, 5.0), at::full({1}, 3.0)};
  save_weights(folder.file("w"), graph, values, ties);
  const SafetensorsFile file(folder.file("w"));
  EXPECT_EQ(file.entries().size(), 2u);
  EXPECT_TRUE(file.tensor("decode.weight").equal(at::full({2}, 5.0)));
  std::vector<at::Tensor> loaded{at::zeros({2}), at::full({1}, 4.0)};
  load_weights(folder.file("w"), graph, loaded, ties);
  EXPECT_TRUE(loaded[0].equal(values[0]));
  EXPECT_EQ(loaded[1].item<double>(), 4);
}

TEST(Weights, ADamagedFileIsRefused) {
  const ScratchFolder folder;
  const Graph graph = small_graph();
  auto values = values_of(graph, at::kFloat);
  write_bytes(folder.file("w"), "not weights at all");
  EXPECT_TRUE(has(refusal([&] { load_weights(folder.file("w"), graph, values); }), "safetensors"));
  EXPECT_TRUE(has(refusal([&] { save_weights(folder.file("w/x"), graph, values); }), "Not a dir"));
}

}  // namespace
}  // namespace tessera::weights_test

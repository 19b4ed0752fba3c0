// The file of a zoo model computes in PyTorch what the reference path computes: outputs, gradients
// and running statistics, in both modes, at the size that it was written for and at another; and it
// is a model that Tessera takes again.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <csignal>
#include <map>
#include <set>

#include "tessera/export/script_file.h"
#include "tessera/graph/reference.h"
#include "tessera/graph/transform.h"
#include "tessera/import/import.h"
#include "tessera/lower/inference.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/zoo/random_start.h"

namespace tessera::script_file_test {
namespace {

/// Random running statistics: those that a norm starts with would hide an exchange.
std::vector<at::Tensor> trained_parameters(const Graph& graph) {
  std::vector<at::Tensor> parameters = initial_parameters(graph);
  at::manual_seed(2);
  for (size_t id = 0; id < parameters.size(); ++id)
    if (graph.parameters()[id].role == ParameterRole::kBuffer)
      parameters[id] = at::rand_like(parameters[id]).add_(0.5);
  return parameters;
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.clone());
  return result;
}

using State = std::map<std::string, at::Tensor>;

State weights_of(const torch::jit::Module& module) {
  State weights;
  for (const auto& item : module.named_parameters()) weights.emplace(item.name, item.value);
  return weights;
}

/// Weights and buffers.
State state_of(const torch::jit::Module& module) {
  State state = weights_of(module);
  for (const auto& item : module.named_buffers()) state.emplace(item.name, item.value);
  return state;
}

size_t id_of(const Graph& graph, const std::string& name) {
  for (size_t id = 0; id < graph.parameters().size(); ++id)
    if (graph.parameters()[id].name == name) return id;
  ADD_FAILURE() << name;
  return 0;
}

std::vector<at::Tensor> outputs_of(torch::jit::Module& module, const at::Tensor& image) {
  const c10::IValue result = module.forward({image});
  if (result.isTensor()) return {result.toTensor()};
  std::vector<at::Tensor> outputs;
  for (const c10::IValue& item : result.toTupleRef().elements()) outputs.push_back(item.toTensor());
  return outputs;
}

void expect_close(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
  const double scale = std::max(1.0, wanted.abs().max().item<double>());
  EXPECT_LE((got - wanted).abs().max().item<double>(), 1e-10 * scale) << what;
}

void expect_all_close(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& wanted,
                      const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    expect_close(got[i], wanted[i], what + " " + std::to_string(i));
}

void expect_close_state(const State& got, const Graph& graph,
                        const std::vector<at::Tensor>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, tensor] : got)
    expect_close(tensor.detach(), wanted[id_of(graph, name)], name);
}

/// The sum of the outputs' cross entropies; that of an auxiliary output counts less.
at::Tensor loss_of(const std::vector<at::Tensor>& outputs, const at::Tensor& target) {
  at::Tensor loss = at::cross_entropy_loss(outputs[0], target);
  if (outputs.size() > 1) loss = loss + 0.4 * at::cross_entropy_loss(outputs[1], target);
  return loss;
}

struct Case {
  const char* spec;  // without dropout, whose masks PyTorch draws otherwise
  Shape input;
  Shape other;
};

class ScriptFile : public testing::TestWithParam<Case> {
 protected:
  ScriptFile() { export_torchscript(path_, graph_, parameters_); }

  void expect_same_numbers(torch::jit::Module& module, const Shape& size);
  void expect_same_training(torch::jit::Module& module);

  // TorchScript's optimiser would take longer than all else.
  const torch::jit::GraphOptimizerEnabledGuard not_optimised_{false};
  const Graph graph_ = build_model(GetParam().spec, GetParam().input);
  const std::vector<at::Tensor> parameters_ = trained_parameters(graph_);
  const ScratchFolder folder_;
  const std::string path_ = folder_ / "net.pt";
};

/// First as it is applied, then as it is trained.
void ScriptFile::expect_same_numbers(torch::jit::Module& module, const Shape& size) {
  const Graph graph = prune(build_model(GetParam().spec, size), Losses::kDrop);
  at::manual_seed(3);
  const at::Tensor image = at::randn(size, at::kDouble);
  for (const bool trains : {false, true}) {
    module.train(trains);
    std::vector<at::Tensor> updated = copies(parameters_);
    const ReferenceResult wanted =
        run_reference(trains ? graph : for_inference(graph), {image}, updated, 1, 0);
    expect_all_close(outputs_of(module, image), wanted.outputs,
                     trains ? "output in training" : "output");
    expect_close_state(state_of(module), graph, updated);
  }
}

/// Outputs, gradients and running statistics of a step.
void ScriptFile::expect_same_training(torch::jit::Module& module) {
  const std::vector<at::Tensor> inputs = random_inputs(graph_);
  std::vector<at::Tensor> updated = copies(parameters_);
  const ReferenceResult wanted = run_reference(graph_, inputs, updated, /*seed=*/1, /*step=*/0);
  const at::Tensor image = inputs[0].clone().requires_grad_(true);
  const std::vector<at::Tensor> outputs = outputs_of(module, image);
  expect_all_close(outputs, wanted.outputs, "output");
  expect_close_state(state_of(module), graph_, updated);
  loss_of(outputs, inputs[1]).backward();
  expect_close(image.grad(), wanted.input_gradients[0], "gradient of the image");
  for (const auto& [name, weight] : weights_of(module))
    expect_close(weight.grad(), wanted.gradients[id_of(graph_, name)], "gradient of " + name);
}

TEST_P(ScriptFile, HasTheNamesOfTheStateDict) {
  const torch::jit::Module module = torch::jit::load(path_);
  const State state = state_of(module), weights = weights_of(module);
  EXPECT_EQ(state.size(), graph_.parameters().size());
  for (size_t id = 0; id < graph_.parameters().size(); ++id) {
    const Parameter& parameter = graph_.parameters()[id];
    ASSERT_EQ(state.count(parameter.name), 1u) << parameter.name;
    EXPECT_TRUE(state.at(parameter.name).equal(parameters_[id])) << parameter.name;
    const bool is_weight = parameter.role != ParameterRole::kBuffer;
    EXPECT_EQ(weights.count(parameter.name), is_weight ? 1u : 0u) << parameter.name;
    EXPECT_EQ(state.at(parameter.name).requires_grad(), is_weight) << parameter.name;
  }
}

TEST_P(ScriptFile, TrainsAsTheReferenceDoes) {
  torch::jit::Module module = torch::jit::load(path_);
  expect_same_training(module);
}

TEST_P(ScriptFile, ComputesWhatTheReferenceDoesAtEverySize) {
  for (const Shape& size : {GetParam().input, GetParam().other}) {
    SCOPED_TRACE(to_string(size));
    torch::jit::Module module = torch::jit::load(path_);
    expect_same_numbers(module, size);
  }
}

TEST_P(ScriptFile, IsAModelThatTesseraTakes) {
  const ImportedModel imported = import_torchscript(path_, GetParam().other);
  const Graph graph = prune(build_model(GetParam().spec, GetParam().other), Losses::kDrop);
  at::manual_seed(5);
  const at::Tensor image = at::randn(GetParam().other, at::kDouble);
  std::vector<at::Tensor> updated = copies(parameters_);
  const ReferenceResult wanted = run_reference(graph, {image}, updated, 1, 0);
  std::vector<at::Tensor> again = initial_parameters(imported.graph);
  const ReferenceResult got = run_reference(imported.graph, {image}, again, 1, 0);
  expect_all_close(got.outputs, wanted.outputs, "output");
  State state;
  for (size_t id = 0; id < again.size(); ++id)
    state.emplace(imported.graph.parameters()[id].name, again[id]);
  expect_close_state(state, graph, updated);
}

/// The same code as another model's, with more layers.
class DeeperScriptFile : public ScriptFile {};

TEST_P(DeeperScriptFile, TrainsAsTheReferenceDoes) {
  torch::jit::Module module = torch::jit::load(path_);
  expect_same_training(module);
}

const Case kCases[] = {
    {"alexnet:width=8,classes=3,dropout=0", {2, 3, 63, 70}, {1, 3, 135, 64}},
    {"attention_unet2d:base=4,depth=3", {2, 3, 16, 24}, {1, 3, 19, 22}},
    {"attention_unet2d:base=4,depth=3,norm=group,groups=2", {1, 3, 13, 10}, {2, 3, 16, 8}},
    {"cnn1d:base=4,depth=3", {2, 1, 37}, {3, 1, 52}},
    {"cnn2d:base=4,depth=2,classes=3", {2, 3, 11, 8}, {3, 3, 8, 9}},
    {"cnn3d:base=2,depth=2", {2, 1, 6, 5, 4}, {1, 1, 8, 9, 7}},
    {"densenet121:growth=4,classes=3", {3, 3, 64, 67}, {2, 3, 80, 66}},
    {"fcn2d:width=0.05,classes=3,dropout=0", {1, 3, 64, 96}, {2, 3, 47, 33}},
    {"inception_v3:width=4,classes=3,dropout=0", {2, 3, 299, 299}, {2, 3, 301, 310}},
    {"inception_v3:width=4,classes=3,dropout=0,aux=no", {3, 3, 107, 110}, {2, 3, 120, 111}},
    {"mobilenet_v2:width=0.1,classes=3,dropout=0", {3, 3, 65, 68}, {2, 3, 100, 67}},
    {"resnet18:width=8,classes=3", {3, 3, 65, 68}, {2, 3, 64, 97}},
    {"resnet50:width=4,classes=3", {3, 3, 65, 68}, {2, 3, 64, 97}},
    {"resnet110_v2:width=4,blocks=3", {2, 3, 17, 16}, {3, 3, 24, 22}},
    {"resnet1001_v2:width=2,blocks=4", {2, 3, 16, 15}, {3, 3, 24, 22}},
    {"resnet_chain2d:width=3,blocks=4", {2, 3, 9, 8}, {1, 3, 13, 10}},
    {"resnet_chain3d:width=2,blocks=3,norm=none", {2, 1, 5, 4, 6}, {1, 1, 7, 6, 5}},
    {"resunet2d:base=3,depth=3", {2, 3, 16, 24}, {1, 3, 13, 10}},
    {"resunet2d:base=3,depth=3,norm=instance", {1, 3, 13, 10}, {2, 3, 16, 8}},
    {"unet2d:base=3,depth=3", {2, 3, 16, 24}, {1, 3, 13, 10}},
    {"unet2d:base=3,depth=4,norm=none,classes=5", {1, 1, 9, 15}, {2, 1, 16, 24}},
    {"resnet_chain1d:blocks=3,width=4,classes=3", {2, 1, 21}, {1, 1, 16}},
    {"resnet_chain2d:blocks=3,width=4,classes=3,norm=batch", {2, 1, 12, 10}, {3, 1, 9, 14}},
    {"resnet_chain3d:blocks=2,width=3,classes=3", {2, 1, 6, 5, 7}, {1, 1, 7, 6, 5}},
    {"unet2d:base=4,depth=2,norm=group,groups=2", {1, 3, 8, 8}, {2, 3, 9, 6}},
    {"unet2d_valid:base=3,depth=3", {1, 1, 48, 44}, {2, 1, 52, 60}},
    {"unet3d:base=2,depth=3", {2, 2, 8, 8, 8}, {1, 2, 9, 8, 7}},
    {"vgg11:width=8,classes=3,dropout=0", {1, 3, 32, 40}, {2, 3, 64, 33}},
    {"vgg19:width=4,classes=3,dropout=0,norm=batch", {3, 3, 64, 70}, {2, 3, 96, 64}},
};

const Case kDeeperCases[] = {
    {"densenet161:growth=1,classes=3", {3, 3, 64, 67}, {}},
    {"densenet169:growth=1,classes=3", {3, 3, 64, 67}, {}},
    {"densenet201:growth=1,classes=3", {3, 3, 64, 67}, {}},
    {"resnet34:width=2,classes=3", {3, 3, 65, 68}, {}},
    {"resnet101:width=2,classes=3", {3, 3, 65, 68}, {}},
    {"resnet152:width=1,classes=3", {3, 3, 65, 68}, {}},
    {"vgg13:width=4,classes=3,dropout=0,norm=batch", {3, 3, 64, 70}, {}},
    {"vgg16:width=4,classes=3,dropout=0", {2, 3, 33, 40}, {}},
};

std::string name_of(const Case& test_case) {
  std::string name = test_case.spec;
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Zoo, ScriptFile, testing::ValuesIn(kCases),
                         [](const auto& test) { return name_of(test.param); });
INSTANTIATE_TEST_SUITE_P(Zoo, DeeperScriptFile, testing::ValuesIn(kDeeperCases),
                         [](const auto& test) { return name_of(test.param); });

TEST(ScriptFiles, OfAllModelsOfTheZooAreTested) {
  std::set<std::string> tested;
  for (const Case& test_case : kCases) tested.insert(find_model(test_case.spec).name);
  for (const Case& test_case : kDeeperCases) tested.insert(find_model(test_case.spec).name);
  // Of a model for several domains a file has what is applied, which is no other than a classifier
  // or a U-Net (DomainModelsAreAppliedAlone).
  const std::set<std::string> domains{"dann", "dsn", "dsn_unet2d", "dsn_unet3d"};
  for (const ModelInfo& model : models())
    EXPECT_EQ(tested.count(model.name) + domains.count(model.name), 1u) << model.name;
}

torch::jit::Module file_of(const Graph& graph, const std::vector<at::Tensor>& parameters) {
  const ScratchFolder folder;
  export_torchscript(folder / "net.pt", graph, parameters);
  return torch::jit::load(folder / "net.pt");
}

TEST(ScriptFiles, DomainModelsAreAppliedAlone) {
  for (const char* spec : {"dann:base=4,code=9,targets=2", "dsn:base=4,code=9,similarity=mmd",
                           "dsn_unet2d:base=3,depth=3", "dsn_unet2d:base=3,depth=3,norm=batch"}) {
    SCOPED_TRACE(spec);
    const Graph graph = build_model(spec, {2, 3, 16, 24});
    std::vector<at::Tensor> parameters = trained_parameters(graph);
    torch::jit::Module module = file_of(graph, parameters);
    module.eval();
    const Graph applied = for_inference(prune(graph, Losses::kDrop));
    ASSERT_EQ(applied.inputs().size(), 1u);
    at::manual_seed(6);
    const at::Tensor image = at::randn({2, 3, 16, 24}, at::kDouble);
    expect_all_close(outputs_of(module, image),
                     run_reference(applied, {image}, parameters, 1, 0).outputs, "output");
  }
}

TEST(ScriptFiles, DropoutFollowsTheModeOfItsModule) {
  const Graph graph = build_model("vgg11:width=4,classes=3", {1, 3, 32, 32});
  torch::jit::Module module = file_of(graph, trained_parameters(graph));
  at::manual_seed(6);
  const at::Tensor image = at::randn({1, 3, 32, 32}, at::kDouble);
  const auto differs = [&] {
    return !outputs_of(module, image)[0].equal(outputs_of(module, image)[0]);
  };
  EXPECT_TRUE(differs());
  module.attr("classifier").toModule().eval();
  EXPECT_FALSE(differs());
  module.train();
  EXPECT_TRUE(differs());
  module.eval();
  EXPECT_FALSE(differs());
}

TEST(ScriptFiles, ANormCanBeFrozenByItself) {
  const Graph graph = build_model("cnn2d:base=2,depth=2,classes=3", {2, 3, 8, 8});
  torch::jit::Module module = file_of(graph, trained_parameters(graph));
  torch::jit::Module frozen = module.attr("block1").toModule().attr("norm").toModule();
  torch::jit::Module free = module.attr("block2").toModule().attr("norm").toModule();
  frozen.eval();
  const at::Tensor before = frozen.attr("running_mean").toTensor().clone();
  const at::Tensor free_before = free.attr("running_mean").toTensor().clone();
  outputs_of(module, at::randn({2, 3, 8, 8}, at::kDouble));
  EXPECT_TRUE(frozen.attr("running_mean").toTensor().equal(before));
  EXPECT_FALSE(free.attr("running_mean").toTensor().equal(free_before));
}

TEST(ScriptFiles, HoldWeightsInTheirTypeAndNothingElse) {
  const Graph graph = build_model("cnn2d:base=2,depth=2,classes=3", {2, 3, 8, 8});
  const at::Tensor whole = at::randn({1'000'000});  // parameters may be views of something large
  std::vector<at::Tensor> parameters;
  int64_t begin = 0;
  for (const Parameter& parameter : graph.parameters()) {
    parameters.push_back(whole.narrow(0, begin, parameter.numel()).view(parameter.shape));
    begin += parameter.numel();
  }
  const ScratchFolder folder;
  export_torchscript(folder / "net.pt", graph, parameters);
  EXPECT_LT(read_bytes(folder / "net.pt").size(), 100'000u);
  torch::jit::Module module = torch::jit::load(folder / "net.pt");
  for (const auto& item : module.named_parameters())
    EXPECT_EQ(item.value.scalar_type(), at::kFloat) << item.name;
}

TEST(ScriptFiles, FrozenWeightsStayFrozen) {
  const Graph graph =
      with_frozen(build_model("cnn2d:base=2,depth=2,classes=3", {2, 3, 8, 8}),
                  [](const Parameter& parameter) { return parameter.name == "head.weight"; });
  torch::jit::Module module = file_of(graph, trained_parameters(graph));
  for (const auto& item : module.named_parameters())
    EXPECT_EQ(item.value.requires_grad(), item.name != "head.weight") << item.name;
}

TEST(ScriptFiles, AWriteThatStopsInTheMiddleIsAnErrorAndChangesNothing) {
  const Graph graph = build_model("cnn2d:base=2,depth=2,classes=3", {2, 3, 8, 8});
  const std::vector<at::Tensor> parameters = trained_parameters(graph);
  const ScratchFolder folder;
  write_bytes(folder / "net.pt", "old");
  const std::string message = text_of_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{2'000, 2'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return refusal([&] { export_torchscript(folder / "net.pt", graph, parameters); });
  });
  EXPECT_TRUE(has(message, "net.pt: File too large")) << message;
  EXPECT_EQ(read_bytes(folder / "net.pt"), "old");
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"net.pt"}));
}

}  // namespace
}  // namespace tessera::script_file_test

// Which inputs are images of domains, and what is learned from labels alone.

#include "tessera/graph/domains.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/graph/reference.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/zoo/random_start.h"

namespace tessera::graph_domains_test {
namespace {

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (ValueId value : values) names.push_back(graph.value(value).name);
  return names;
}

/// The image is what a reconstruction is compared with, and an image all the same.
TEST(Domains, AreTheImagesThatTheNetworkReads) {
  const Graph graph = build_model("dsn:base=2,code=4,targets=2", {2, 1, 8, 8});
  EXPECT_EQ(names_of(graph, image_inputs(graph)),
            (std::vector<std::string>{"image", "image1", "image2"}));
  EXPECT_EQ(domain_of_input(graph, graph.inputs()[1]), 0);
  EXPECT_EQ(domain_of_input(graph, image_inputs(graph)[2]), 2);
}

TEST(Domains, OfOtherModelsThereIsOne) {
  const Graph graph = build_model("unet2d:base=2,depth=2", {1, 1, 8, 8});
  EXPECT_EQ(names_of(graph, image_inputs(graph)), std::vector<std::string>{"image"});
  EXPECT_EQ(labelled_task(graph).nodes().size(), graph.nodes().size());
}

TEST(Domains, TheLabelledTaskHasTheSourceAndItsLossAlone) {
  for (const char* spec : {"dann:base=2,code=4", "dsn:base=2,code=4,targets=2,similarity=mmd",
                           "dsn_unet2d:base=2,depth=2"}) {
    SCOPED_TRACE(spec);
    const Graph graph = build_model(spec, {2, 1, 8, 8}), task = labelled_task(graph);
    EXPECT_EQ(names_of(task, task.inputs()), (std::vector<std::string>{"image", "target"}));
    for (const Node& node : task.nodes()) {
      EXPECT_TRUE(node.name.starts_with("shared.") || node.name.starts_with("head") ||
                  node.name.starts_with("flatten") || node.name == "loss")
          << node.name;
      EXPECT_EQ(node.op->is_loss(), node.name == "loss");
    }
    std::vector<at::Tensor> parameters = initial_parameters(graph);
    const std::vector<at::Tensor> inputs = random_inputs(graph);
    const ReferenceResult all = run_reference(graph, inputs, parameters, 1, 0);
    const ReferenceResult alone = run_reference(task, {inputs[0], inputs[1]}, parameters, 1, 0);
    EXPECT_TRUE(at::equal(alone.outputs[0], all.outputs[0]));
    EXPECT_LT(alone.loss, all.loss);
  }
}

/// Another loss for the task leaves those of the domains alone.
TEST(Domains, WithoutTheLabelledLossesTheOthersStay) {
  const Graph graph = build_model("dsn:base=2,code=4,targets=2", {2, 1, 8, 8});
  const Graph rest = without_labelled_losses(graph);
  EXPECT_EQ(names_of(rest, rest.inputs()), (std::vector<std::string>{"image", "image1", "image2"}));
  EXPECT_EQ(rest.nodes().size() + 1, graph.nodes().size());
  EXPECT_TRUE(std::none_of(rest.nodes().begin(), rest.nodes().end(),
                           [](const Node& node) { return node.name == "loss"; }));
}

}  // namespace
}  // namespace tessera::graph_domains_test

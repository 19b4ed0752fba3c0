// A network of one's own, operator by operator, proved on six workers.
//
// Two levels of a U-Net on an image whose sides are odd, cut into 3 x 2 parts: the loss, the
// outputs, every gradient and the updated weights are those of one worker, to 1e-10.

#include <tessera/tessera.h>

using namespace tessera;

int main() {
  Graph graph;
  const ValueId image = graph.add_input("image", ValueType::image({1, 3, 93, 71}));

  ValueId x = convolution(graph, image, "enc", {.out_channels = 8, .kernel = {3}, .padding = {1}});
  const ValueId skip = relu(graph, batch_norm(graph, x, "enc_norm"), "enc_relu");
  x = max_pool(graph, skip, "pool", {.kernel = {2}});
  x = convolution(graph, x, "deep", {.out_channels = 16, .kernel = {3}, .padding = {1}});
  x = relu(graph, x, "deep_relu");
  x = interpolate(graph, x, "up", {.size = {93, 71}});
  x = concat(graph, {x, skip}, "join");
  x = convolution(graph, x, "classes", {.out_channels = 4, .kernel = {1}});
  graph.mark_output(x);
  add_losses(graph, {.spec = "cross_entropy"});

  Job job = make_job(graph);
  job.real = at::kDouble;
  job.plan.space = {3, 2};
  const VerifyReport report = verify(job);
  fmt::print("{} workers, loss {:.4f}, {}\n", report.ranks, report.losses[0],
             report.ok ? "the same numbers as one" : "DIFFERENT NUMBERS in " + report.worst);
  return report.ok ? 0 : 1;
}

#include "tessera/job/job.h"

#include <fmt/format.h>

#include "tessera/base/cpu.h"
#include "tessera/base/error.h"
#include "tessera/base/quantity.h"
#include "tessera/config/train_config.h"
#include "tessera/graph/number_type.h"
#include "tessera/import/import.h"
#include "tessera/job/choose_device.h"
#include "tessera/job/choose_plan.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tessera/ops/conv/direct_convolution.h"
#include "tessera/zoo/zoo.h"

namespace tessera {
namespace {

at::ScalarType parse_dtype(const std::string& name, const DeviceChoice& device) {
  if (name == "float32") return at::kFloat;
  if (name == "float64") return at::kDouble;
  if (name != "bf16")
    throw_error<InvalidInput>("[--dtype] {} is not supported; use float32, float64 or bf16", name);
  if (device.type == at::kCPU && !cpu_has_bf16())
    throw_error<Unsupported>(
        "[--dtype] this CPU does not multiply numbers of type bf16: it lacks AVX512-BF16; use "
        "float32");
  return at::kBFloat16;
}

DomainModules modules_of(const JobConfig& config) {
  return {config.encoder, config.private_encoder, config.decoder, config.head};
}

/// The input with the batch that --batch gives.
std::string input_of(const JobConfig& config) {
  const bool from_files = names_a_file(config.model) || modules_of(config).any();
  if (config.batch == 0 || (config.input.empty() && from_files)) return config.input;
  std::vector<int64_t> sizes = config.input.empty() ? find_model(config.model).default_input
                                                    : parse_sizes(config.input, "--input");
  sizes[0] = config.batch;
  return to_string(sizes);
}

/// The model with the batches that --target-batch gives.
std::string model_of(const JobConfig& config) {
  if (config.target_batch.empty()) return config.model;
  const bool has_options = config.model.find(':') != std::string::npos;
  return fmt::format("{}{}target_batch={}", config.model, has_options ? "," : ":",
                     config.target_batch);
}

}  // namespace

Job resolve_job(const JobConfig& config, at::ScalarType otherwise) {
  if (config.model.empty())
    throw_error<InvalidInput>("[MODEL] no model is given; name one, such as unet2d");
  check_job_config(config);
  Job job;
  job.device = choose_device(config);
  job.real = config.dtype ? parse_dtype(*config.dtype, job.device) : otherwise;
  job.model = load_model({model_of(config), input_of(config), config.loss, config.output_weights,
                          modules_of(config), config.trust_model});
  job.plan = choose_plan(config, job.graph());
  check_plan(job.plan, job.graph().type(job.graph().inputs()[0]));
  if (config.norm == "micro-batch")
    job.model.graph = with_micro_batch_norm(job.model.graph, job.plan.micro_batches);
  if (config.convolution == "direct") job.model.graph = with_direct_convolutions(job.model.graph);
  assign_stages(config, job.graph(), job.numbers(), &job.plan);
  if (!config.memory.empty()) job.memory_limit = parse_bytes(config.memory, "--memory");
  job.seed = config.seed;
  job.launch = {config.launch, static_cast<int>(config.threads), config.timeout_seconds,
                parse_bind(config.bind)};
  return job;
}

Job make_job(Graph graph) {
  Job job;
  job.model.graph = std::move(graph);
  return job;
}

}  // namespace tessera

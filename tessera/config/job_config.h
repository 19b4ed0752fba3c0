#pragma once
// What every command that runs a network can be told: which network, where its parts go, and how it
// runs. Training adds its own keys (train_config.h); names, help and legal values of all of them
// are one table (config_keys.h).
//
// Example:
//   JobConfig config;
//   config.model = "unet2d:base=16";
//   config.space = "2x2";
//   const Job job = resolve_job(config);

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

struct JobConfig {
  // [model]
  std::string model;  // "unet2d:base=16", or a TorchScript file
  std::string input;  // "4x3x512x512", batch first; empty: the model's own
  std::string loss;   // "0.5*bce+0.5*dice"; empty: the model's own, or what fits its outputs
  std::string output_weights;                           // "1,0.4"
  std::string encoder, private_encoder, decoder, head;  // TorchScript files; see domain_modules.h
  bool trust_model = false;  // read a model file also where its code cannot be closed in

  // [data]
  int64_t batch = 0;         // 0: that of the input
  std::string target_batch;  // "8", or "8/4" for one each; empty: as the model says

  // [placement]
  int64_t replicas = 1;
  int64_t domains = 0;  // groups of workers for each domain; 0: domains have none of their own
  int64_t stages = 1;   // of the network, or of each group
  std::string space;    // "2x2", for all stages; "2x2,1x1": one for each
  std::string pieces;
  int64_t workers = 0;    // 0: the product of the others
  int64_t layers = 1;     // slices of residual chains, solved at once
  std::string multigrid;  // "levels=3,coarsening=4"; empty: layers follow each other
  int64_t micro_batches = 1;
  std::string pipeline_schedule = "1f1b";
  std::string pipeline_costs = "tasks";
  int64_t chunks = 2;            // of a stage, with the interleaved schedule
  std::string balance = "time";  // or a file
  std::string norm = "batch";
  std::string plan;             // a file that replaces what is above
  std::string memory;           // limit per worker; empty: none
  std::string device = "auto";  // where kernels run: "cpu", "cuda", "cuda:1"
  bool tf32 = false;            // on a GPU, products of float32 numbers with 10 bits
  bool deterministic = false;   // on a GPU, the same bits in every run
  std::string scratch;          // limit per kernel; empty: as plan.h says
  int64_t threads = 1;
  std::string launch = "threads";
  std::string bind = "auto";

  // [train] and [run]
  uint64_t seed = 1;
  std::optional<std::string> dtype;  // none: float32 (verify: float64)
  std::string convolution = "auto";
  double timeout_seconds = 600;

  bool operator==(const JobConfig&) const = default;
};

}  // namespace tessera

#include "tessera/config/config_keys.h"

#include <algorithm>

#include "tessera/base/counts.h"
#include "tessera/base/error.h"
#include "tessera/config/config_words.h"
#include "tessera/plan/limits.h"
#include "tessera/plan/schedule_costs.h"
#include "tessera/plan/schedule_kind.h"

namespace tessera {
namespace {

using namespace config_words;
using Config = TrainConfig;
using Keys = std::vector<ConfigKey>;

Keys model_keys() {
  return {
      key("MODEL", "name",
          "zoo model with options: unet2d:base=16,classes=4; or a file of torch.jit.script or "
          "torch.jit.trace: net.pt",
          &Config::model),
      key("--loss", "loss",
          "terms joined by +: 0.5*bce+0.5*dice (default: cross_entropy, or bce for one channel); "
          "`tessera models --losses` lists them",
          &Config::loss),
      key("--output-weights", "output_weights", "factors of the losses of several outputs: 1,0.4",
          &Config::output_weights),
      key("--encoder", "encoder",
          "with --private, --decoder and --head: TorchScript files in place of the parts of the "
          "model dsn; this one makes the shared code of an image (docs/domains.md)",
          &Config::encoder),
      key("--private", "private",
          "module that makes the private code of an image; each domain gets a copy of it",
          &Config::private_encoder),
      key("--decoder", "decoder", "module that makes an image again from the sum of both codes",
          &Config::decoder),
      key("--head", "head", "module that makes class scores from the shared code", &Config::head),
      conduct(key("--trust-model", "trust_model",
                  "read a model file also where this system cannot close in the process that reads "
                  "it",
                  &Config::trust_model)),
      sizes(key("--input", "input",
                "batch x channels x spatial sizes, in pixels: 4x3x512x512 (default: the model's "
                "own)",
                &Config::input)),
      key("--init-weights", "init_weights", "safetensors file with the weights to start from",
          &Config::init_weights),
      key("--skip-mismatched", "skip_mismatched",
          "start from what fits of --init-weights, such as all but a head of another size; says "
          "what did not",
          &Config::skip_mismatched),
      key("--freeze", "freeze",
          "weights that stay as they are, by patterns of their names: enc1.*,*.norm?.*",
          &Config::freeze),
      conduct(
          key("--save-weights", "save_weights",
              "file for the weights at the end: .safetensors, or .pt for the whole model, as "
              "torch.jit.load takes it; best:FILE for those of the best validation, best alone for "
              "best.safetensors in the run's folder",
              &Config::save_weights))};
}

Keys data_keys() {
  return {
      key("--data", "source",
          "folder:PATH, list:FILE.csv or .json, files:IMAGES,TARGETS (docs/data.md), or made up: "
          "synthetic[:options]; of several domains one for each, source=...;target1=... "
          "(docs/domains.md)",
          &Config::data),
      key("--channels-last", "channels_last",
          "the images in the files are samples x space x channels, and so are targets that are "
          "numbers",
          &Config::channels_last),
      conduct(one_of({"all", "sample", "none"},
                     key("--label-check", "label_check",
                         "the labels that are read before the first step, to refuse those that are "
                         "not classes",
                         &Config::label_check))),
      alias({"--normalize"},
            key("--normalise", "normalise",
                "the images' numbers to one range: z-score[:over=set], percentiles:low=1,high=99, "
                "window:low=-160,high=240, scale (255 becomes 1), given:mean=...,deviation=...",
                &Config::normalise)),
      one_of({"file", "ras"},
             key("--orientation", "orientation",
                 "axes of volumes as in their files, or to the right, anterior and "
                 "superior",
                 &Config::orientation)),
      key("--spacing", "spacing",
          "size of a pixel in mm along each axis, to which images are resampled: 1x1x2.5",
          &Config::spacing),
      sizes(key("--crop", "crop",
                "size of the patches that are cut from larger images (default: the network's "
                "input)",
                &Config::crop)),
      key("--crop-centres", "crop_centres",
          "where training patches lie: uniform, foreground[:share=0.5] or classes[:share=0.5]",
          &Config::crop_centres),
      key("--crop-fill", "crop_fill",
          "what patches hold beyond the image, after --normalise; labels do not count there",
          &Config::crop_fill),
      within(1, kMostCounted,
             key("--patches-per-image", "patches_per_image",
                 "training patches of each image in an epoch", &Config::patches_per_image)),
      key("--augment", "augment",
          "random changes of training patches, joined by +: "
          "flip+rotate90+affine:rotate=15,scale=0.1+noise:std=0.05 (`tessera data "
          "--augmentations` lists them)",
          &Config::augment),
      below(0, 1,
            key("--validation-fraction", "validation_fraction",
                "part of the samples that is only validated on, where the data does not say which",
                &Config::validation_fraction)),
      key("--fold", "fold",
          "i/k: cut the samples into k parts by the seed and validate on part i, instead of a "
          "fraction",
          &Config::fold),
      key("--validate-targets", "validate_targets",
          "domains beside the source that have labels and are scored with each validation: all, or "
          "target1,target3; some of their samples are set aside as the source's are",
          &Config::validate_targets),
      within(0, kMostCounted,
             alias({"--batch-size"},
                   key("--batch", "batch", "samples per step, instead of --input's (0: as it says)",
                       &Config::batch))),
      key("--target-batch", "target_batch",
          "samples per step of the domains beside the source: 8, or 8/4 for one number each; 0: as "
          "many as of the source (docs/domains.md)",
          &Config::target_batch),
      key("--drop-last", "drop_last",
          "leave out the samples that do not fill the last batch of an epoch", &Config::drop_last)};
}

Keys train_keys() {
  return {
      conduct(excluding(
          {"--steps"},
          alias({"--num-epochs"},
                within(1, kMostCounted,
                       key("--epochs", "epochs",
                           "passes over the data, the source's of several domains (default: 10)",
                           &Config::epochs))))),
      conduct(excluding({"--epochs"},
                        within(1, kMostCounted,
                               key("--steps", "steps", "updates of the weights, instead of epochs",
                                   &Config::steps)))),
      conduct(key("--target-epochs", "target_epochs",
                  "passes over the data of each domain beside the source that the run may take: 3, "
                  "or 3/5 for one number each; 0: any (docs/domains.md)",
                  &Config::target_epochs)),
      within(1, kMostParts,
             key("--accumulation", "accumulation", "batches whose gradients make one step",
                 &Config::accumulation)),
      at_least(0, key("--clip-norm", "clip_norm", "limit of the gradients' global norm (0: none)",
                      &Config::clip_norm)),
      at_least(0,
               key("--seed", "seed", "seed of weights, data, shuffles and dropout", &Config::seed)),
      one_of(
          {"float32", "float64", "bf16"},
          key("--dtype", "dtype",
              "type of values (default: float32; verify: float64); with bf16 weights are float32",
              &Config::dtype)),
      one_of({"auto", "direct"},
             key("--convolution", "convolution",
                 "3x3 windows by Winograd's tiles where that is faster, or product by product",
                 &Config::convolution)),
      conduct(one_of({"stop", "skip"}, key("--on-nan", "on_nan",
                                           "what to do where a loss or gradient is not "
                                           "finite: end the run, or leave the step out",
                                           &Config::on_nan))),
      conduct(within(0, kMostCounted,
                     key("--patience", "patience",
                         "validations without improvement before the run stops "
                         "early (0: never)",
                         &Config::patience))),
      conduct(at_least(0, key("--min-delta", "min_delta", "least change that counts as improvement",
                              &Config::min_delta))),
      conduct(key("--print-loss", "print_loss", "every step's loss on stdout, with 17 digits",
                  &Config::print_loss)),
      conduct(key("--dump-gradients", "dump_gradients",
                  "safetensors file for the gradients of the run's first step",
                  &Config::dump_gradients)),
      within(0, kMostCounted,
             key("--check-serial", "check_serial",
                 "with --multigrid: every so many steps, take the step layer after layer, "
                 "too, and say how far apart loss and gradient are (0: never)",
                 &Config::check_serial)),
      at_least(0, key("--multigrid-residual", "multigrid_residual",
                      "largest residual that a step by --multigrid may leave; above it, each "
                      "direction gets one V-cycle more (0: any)",
                      &Config::multigrid_residual)),
      at_least(0, key("--multigrid-error", "multigrid_error",
                      "largest relative error of the gradient that --check-serial may find; above "
                      "it, each direction gets one V-cycle more (0: any)",
                      &Config::multigrid_error)),
      one_of({"loss", "accuracy", "top5", "mean_iou", "dice"},
             key("--monitor", "monitor",
                 "the validation metric that decides which checkpoint is best", &Config::monitor)),
      below(0, 1,
            key("--ema", "ema",
                "decay of a moving average of the weights, which is validated and saved, such as "
                "0.999 (0: none)",
                &Config::ema))};
}

Keys optimiser_keys() {
  return {
      one_of(
          {"sgd", "adam", "adamw"},
          alias({"--optimizer"}, key("--optimiser", "name", "the optimiser", &Config::optimiser))),
      alias({"--lr"},
            at_least(
                0, key("--learning-rate", "learning_rate",
                       "the highest of the schedule (default: 0.01 for sgd, 0.001 for the others)",
                       &Config::learning_rate))),
      alias({"--wd"},
            at_least(0, key("--weight-decay", "weight_decay",
                            "decay of the weights (default: 0.01 for adamw, 0 for the others)",
                            &Config::weight_decay))),
      below(0, 1, key("--momentum", "momentum", "momentum of sgd", &Config::momentum)),
      key("--nesterov", "nesterov", "Nesterov's step, with sgd", &Config::nesterov),
      below(0, 1,
            key("--beta1", "beta1", "decay of the mean, with adam and adamw", &Config::beta1)),
      below(0, 1,
            key("--beta2", "beta2", "decay of the squares, with adam and adamw", &Config::beta2)),
      above(0, key("--epsilon", "epsilon", "added to the denominator, with adam and adamw",
                   &Config::epsilon))};
}

Keys schedule_keys() {
  return {
      formerly("--schedule", "",
               one_of({"constant", "step", "exponential", "poly", "plateau", "cosine", "one_cycle"},
                      key("--learning-rate-schedule", "name", "how the learning rate changes",
                          &Config::schedule))),
      within(0, kMostCounted,
             key("--warmup-steps", "warmup_steps", "steps of linear warm-up before the schedule",
                 &Config::warmup_steps)),
      within(
          1, kMostCounted,
          key("--step-epochs", "step_epochs", "step: epochs between drops", &Config::step_epochs)),
      at_least(0, key("--gamma", "gamma",
                      "step, plateau: factor of a drop; exponential: of each epoch (default: "
                      "0.1; exponential: 0.95)",
                      &Config::gamma)),
      at_least(0,
               key("--power", "power", "poly: exponent of the part that is left", &Config::power)),
      within(0, kMostCounted,
             key("--plateau-patience", "plateau_patience",
                 "plateau: validations in a row that are not better, before one more is a drop",
                 &Config::plateau_patience)),
      below(
          0, 1,
          key("--plateau-threshold", "plateau_threshold",
              "plateau: least part by which a better value is better", &Config::plateau_threshold)),
      at_least(0,
               key("--min-learning-rate", "min_learning_rate",
                   "cosine: the rate at the end; plateau: the least", &Config::min_learning_rate)),
      within(0, 1,
             key("--pct-start", "pct_start", "one_cycle: fraction of the steps that climb",
                 &Config::pct_start)),
      at_least(1, key("--div-factor", "div_factor", "one_cycle: learning rate / first one",
                      &Config::div_factor)),
      at_least(1, key("--final-div-factor", "final_div_factor", "one_cycle: first rate / last one",
                      &Config::final_div_factor))};
}

Keys placement_keys() {
  const std::vector<std::string> plan{"--plan"};
  return {
      excluding(plan, formerly("--data", "data",
                               within(1, kMostRanks,
                                      key("--replicas", "replicas", "parts of the batch",
                                          &Config::replicas)))),
      excluding({"--plan", "--layers", "--multigrid"},
                within(0, 2,
                       key("--domains", "domains",
                           "groups of workers for each image that the network reads, of a "
                           "model for several domains: 1, or 2 with the private encoders "
                           "apart (docs/domains.md); 0: none of their own",
                           &Config::domains))),
      excluding({"--plan", "--layers", "--multigrid"},
                within(1, kMostStages,
                       key("--stages", "stages",
                           "parts of the network, or of each domain's group, one after the other",
                           &Config::stages))),
      excluding({"--plan", "--stages", "--domains"},
                within(1, kMostStages,
                       key("--layers", "layers",
                           "slices of residual chains that are solved at once, by --multigrid",
                           &Config::layers))),
      excluding(plan, grids(key("--space", "space",
                                "parts of the spatial axes: 2x2; or a grid for each stage: "
                                "2x2,1x2,1x1",
                                &Config::space))),
      excluding(plan, sizes(key("--pieces", "pieces",
                                "pieces of each worker's part: a number, or per axis as 2x2",
                                &Config::pieces))),
      excluding(plan, within(0, kMostRanks,
                             key("--workers", "workers",
                                 "number of workers; the space grid with the least halo traffic "
                                 "is taken (0: as the other options say; under mpirun or srun, "
                                 "where none of them is "
                                 "given, as many as were started)",
                                 &Config::workers))),
      by_micro_batches(
          excluding(plan, within(1, kMostParts,
                                 key("--micro-batches", "micro_batches",
                                     "parts of the batch that follow each other through the stages",
                                     &Config::micro_batches)))),
      excluding(
          plan,
          formerly("--schedule", "schedule",
                   one_of(schedule_names(),
                          key("--pipeline-schedule", "pipeline_schedule",
                              "in which order stages work on micro-batches (docs/pipeline.md)",
                              &Config::pipeline_schedule)))),
      excluding(plan, one_of(schedule_costs_names(),
                             key("--pipeline-costs", "pipeline_costs",
                                 "by which costs tasks are ordered: a unit each, or their kernels",
                                 &Config::pipeline_costs))),
      within(
          1, 1024,
          key("--chunks", "chunks",
              "parts of the network on each stage, of the interleaved schedule", &Config::chunks)),
      key("--balance", "balance",
          "what the stages are made equal in: layers, parameters, memory, time; or a JSON file "
          "with a list of node names for each",
          &Config::balance),
      by_micro_batches(
          one_of({"batch", "micro-batch"},
                 key("--norm", "norm",
                     "batch norm by the statistics of the whole batch, or of each micro-batch",
                     &Config::norm))),
      excluding(
          {"--replicas", "--domains", "--stages", "--layers", "--multigrid", "--space", "--pieces",
           "--workers", "--micro-batches", "--pipeline-schedule", "--pipeline-costs", "--scratch"},
          key("--plan", "plan", "JSON file with the placement", &Config::plan)),
      key("--memory", "memory", "limit per worker, of its device's memory: 16GiB", &Config::memory),
      key("--device", "device",
          "where each worker computes: cpu; cuda, the GPUs of the machine in turn; cuda:1, this "
          "one; "
          "or auto, GPUs where there are any (docs/gpu.md)",
          &Config::device),
      key("--deterministic", "deterministic",
          "the same bits in every run on a GPU, at some cost in time; on a CPU they always are",
          &Config::deterministic),
      excluding(plan, key("--scratch", "scratch",
                          "most memory that a kernel has besides its images, where it can do with "
                          "less (default: 64MiB)",
                          &Config::scratch)),
      within(1, kMostThreads, key("--threads", "threads", "threads per worker", &Config::threads)),
      one_of(
          {"threads", "mpi"},
          key("--launch", "launch",
              "workers as threads of this process, or as processes under mpirun", &Config::launch)),
      one_of({"auto", "on", "off"},
             key("--bind", "bind",
                 "give each worker cores of its own; auto: where all have room and nobody else "
                 "has bound this program",
                 &Config::bind))};
}

/// The keys of placement that change the numbers.
ConfigKey tf32_key() {
  return key("--tf32", "tf32",
             "on a GPU, products of float32 numbers with 10 bits: faster, and coarser; without "
             "effect elsewhere",
             &Config::tf32);
}

ConfigKey multigrid_key() {
  return excluding({"--plan", "--stages", "--domains"},
                   key("--multigrid", "multigrid",
                       "solve residual chains by sweeps, approximately (docs/multigrid.md): "
                       "levels=2,coarsening=4,forward=2,backward=1,relax=FCF,skip=no",
                       &Config::multigrid));
}

Keys run_keys() {
  return {key("--run", "folder",
              "folder for run.json, metrics.csv and checkpoints (default: a new one, "
              "runs/MODEL-DATE-N)",
              &Config::folder),
          key("--resume", "resume",
              "auto: continue where the folder has a checkpoint; no: start anew; or a checkpoint's "
              "path",
              &Config::resume),
          within(0, kMostCounted,
                 key("--checkpoint-interval", "checkpoint_interval",
                     "steps between checkpoints (0: one after every epoch)",
                     &Config::checkpoint_interval)),
          within(1, kMostCounted,
                 key("--keep", "keep_checkpoints", "last checkpoints to keep, besides the best",
                     &Config::keep_checkpoints)),
          within(1, kMostCounted,
                 key("--log-interval", "log_interval", "steps between rows of metrics.csv",
                     &Config::log_interval)),
          above(0, key("--timeout", "timeout_seconds",
                       "longest wait for another worker, in seconds", &Config::timeout_seconds))};
}

Keys make_keys() {
  Keys all;
  const auto add = [&](const char* table, Keys keys) {
    for (ConfigKey& key : keys) {
      key.table = table;
      all.push_back(std::move(key));
    }
  };
  add("model", model_keys());
  add("data", data_keys());
  add("train", train_keys());
  add("optimiser", optimiser_keys());
  add("schedule", schedule_keys());
  Keys placement = conduct(placement_keys());
  placement.push_back(tf32_key());
  placement.push_back(multigrid_key());
  add("placement", std::move(placement));
  add("run", conduct(run_keys()));
  return all;
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> keys = make_keys();
  return keys;
}

bool is_called(const ConfigKey& key, const std::string& name) {
  const auto in_file = [](std::string option) {  // "--batch-size" → "batch_size"
    option.erase(0, option.find_first_not_of('-'));
    std::replace(option.begin(), option.end(), '-', '_');
    return option;
  };
  return key.name == name || (!key.old_name.empty() && key.old_name == name) ||
         std::ranges::any_of(key.aliases,
                             [&](const std::string& alias) { return in_file(alias) == name; });
}

const ConfigKey& config_key(const std::string& option) {
  for (const ConfigKey& key : config_keys())
    if (key.option == option) return key;
  throw_error<InternalError>("no configuration key has the option {}", option);
}

}  // namespace tessera

#include "tests/attack/resources/extreme_command.h"

namespace tessera_attack {
namespace {

using Random = std::mt19937_64;
using Words = std::vector<std::string>;

bool one_in(Random& random, unsigned n) { return random() % n == 0; }

const std::string& any_of(Random& random, const Words& words) {
  return words[random() % words.size()];
}

std::string extreme_number(Random& random) {
  static const Words numbers{"0",
                             "-1",
                             "1",
                             "2",
                             "3",
                             "7",
                             "64",
                             "255",
                             "1024",
                             "4096",
                             "65535",
                             "65536",
                             "65537",
                             "1000000",
                             "1048576",
                             "1048577",
                             "2147483647",
                             "2147483648",
                             "4294967295",
                             "4294967296",
                             "4294967297",
                             "1099511627776",
                             "4611686018427387904",
                             "9223372036854775807",
                             "9223372036854775808",
                             "-9223372036854775808",
                             "99999999999999999999999",
                             "1e300",
                             "-1e300",
                             "1e-300",
                             "nan",
                             "inf",
                             "-inf",
                             "",
                             " ",
                             "0x10",
                             "1.5",
                             "007",
                             "+5",
                             "--",
                             "1,",
                             "\xff"};
  return any_of(random, numbers);
}

/// Numbers that are more often legal than not.
std::string count(Random& random) {
  static const Words small{"1", "1", "2", "2", "2", "4", "4", "8", "16", "64", "256", "1024"};
  return one_in(random, 5) ? extreme_number(random) : any_of(random, small);
}

std::string list(Random& random, const char* separator) {
  const uint64_t length = one_in(random, 40) ? 5000 : one_in(random, 4) ? 1 + random() % 5 : 2;
  std::string text;
  for (uint64_t i = 0; i < length; ++i) text += (i == 0 ? "" : separator) + count(random);
  return text;
}

/// Without norm mostly: batch norm refuses micro-batches.
std::string model(Random& random) {
  static const Words names{"cnn2d:norm=none",     "cnn2d:norm=none",  "unet2d:norm=none",
                           "unet2d:norm=none",    "cnn2d:norm=batch", "unet2d:norm=batch",
                           "cnn1d:norm=none",     "cnn3d:norm=none",  "unet3d:norm=none",
                           "resnet18:classes=10", "vgg11:norm=none"};
  static const Words options{"base", "depth", "classes", "dropout"};
  std::string text = any_of(random, names);
  while (one_in(random, 5)) text += "," + any_of(random, options) + "=" + count(random);
  return text;
}

/// As many axes as the model takes, mostly.
std::string input(Random& random, const std::string& model) {
  static const Words line{"1x3x64", "4x3x1024", "64x3x256", "1x3x1048576"};
  static const Words plane{"1x3x64x64",     "4x3x64x64",     "64x3x32x32",
                           "1024x3x32x32",  "1x3x4096x4096", "8x3x1024x1024",
                           "1x3x1048576x8", "65536x3x32x32", "1x3x32x4611686018427387904"};
  static const Words space{"1x1x16x16x16", "4x1x32x32x32", "64x1x16x16x16", "1x1x1024x1024x1024"};
  if (one_in(random, 8)) return list(random, "x");
  const std::string name = model.substr(0, model.find(':'));
  return any_of(random, name.ends_with("1d") ? line : name.ends_with("3d") ? space : plane);
}

Words placement(Random& random) {
  static const Words schedules{"gpipe", "1f1b", "gems", "interleaved", "sequential", "zero_bubble"};
  Words words;
  const auto add = [&](const char* option, std::string value, unsigned rarity) {
    if (one_in(random, rarity)) words.insert(words.end(), {option, std::move(value)});
  };
  add("--replicas", count(random), 6);
  add("--stages", count(random), 7);
  add("--space", list(random, one_in(random, 6) ? "," : "x"), 3);
  add("--pieces", list(random, "x"), 4);
  add("--workers", count(random), 8);
  add("--micro-batches", count(random), 5);
  add("--chunks", count(random), 14);
  add("--pipeline-schedule", any_of(random, schedules), 6);
  add("--threads", count(random), 8);
  add("--memory", count(random) + (one_in(random, 2) ? "GiB" : ""), 8);
  add("--timeout", count(random), 12);
  add("--seed", count(random), 12);
  if (one_in(random, 6)) words.insert(words.end(), {"--norm", "micro-batch"});
  return words;
}

Words own_options(Random& random, const std::string& command) {
  if (command == "plan")
    return one_in(random, 3) ? Words{"--program", "--rank", one_in(random, 2) ? "0" : count(random)}
           : one_in(random, 3) ? Words{"--timeline", "--width", count(random)}
                               : Words{"--json"};
  if (command == "verify") return {"--steps", one_in(random, 2) ? "1" : extreme_number(random)};
  if (command == "bench")
    return {"--iterations", one_in(random, 2) ? "1" : extreme_number(random), "--warmup",
            one_in(random, 2) ? "0" : extreme_number(random)};
  if (command != "train") return {};
  static const Words names{"--epochs",       "--steps",         "--accumulation",
                           "--clip-norm",    "--patience",      "--warmup-steps",
                           "--batch",        "--keep",          "--step-epochs",
                           "--log-interval", "--learning-rate", "--checkpoint-interval"};
  Words words{"--run", "run_" + std::to_string(random()), "--data",
              "synthetic:samples=" + count(random) + ",classes=2"};
  for (int i = 0; i < 3; ++i) words.insert(words.end(), {any_of(random, names), count(random)});
  return words;
}

}  // namespace

std::vector<std::string> extreme_command(std::mt19937_64& random) {
  static const Words commands{"plan",  "plan",  "plan",    "plan",    "verify", "bench",
                              "train", "train", "inspect", "predict", "models"};
  const std::string command = any_of(random, commands);
  if (command == "models") return {command, model(random)};
  Words words{command, model(random)};
  if (!one_in(random, 4)) words.insert(words.end(), {"--input", input(random, words[1])});
  if (command == "inspect") return words;
  for (const Words& more : {placement(random), own_options(random, command)})
    words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace tessera_attack

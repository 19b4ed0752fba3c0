// Every format that Tessera reads, after mutations: the real reader must take the file or refuse it
// by its name, as the user's mistake and not as ours, and leave it as it was. Images have a driver
// of their own (mutated_images_test.cpp).

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/checkpoint/safetensors.h"
#include "tessera/checkpoint/weights.h"
#include "tessera/config/config_layer.h"
#include "tessera/config/train_config.h"
#include "tessera/data/array_reader.h"
#include "tessera/data/array_sink.h"
#include "tessera/data/json_list.h"
#include "tessera/data/open.h"
#include "tessera/data/table_list.h"
#include "tessera/graph/checksum.h"
#include "tessera/job/choose_plan.h"
#include "tessera/planner/balance.h"
#include "tessera/train/metrics_file.h"
#include "tessera/train/run_folder.h"
#include "tessera/zoo/zoo.h"
#include "tests/attack/mutation.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::mutated_files_test {
namespace {

using attack::Mutation;

constexpr size_t kLongestMessage = 20'000;

/// A format: what a valid file holds, where it lies, and how it is read.
struct Surface {
  std::string name;
  std::string path;
  std::vector<std::string> valid;
  std::function<void()> read;
  std::function<std::string(const std::string&)> finish = [](const std::string& bytes) {
    return bytes;
  };
};

/// Makes the checksum right again where the text is still JSON, so that the values behind it are
/// reached.
std::string signed_again(const std::string& text) {
  nlohmann::json state = nlohmann::json::parse(text, nullptr, false);
  if (!state.is_object() || state.size() > 100) return text;
  state.erase("checksum");
  const std::string sum = checksum_text(checksum(state.dump()));
  state["checksum"] = sum;
  return state.dump();
}

class MutatedFiles : public ::testing::Test {
 protected:
  MutatedFiles() {
    add_npy();
    add_weights();
    add_plan();
    add_balance();
    add_checkpoint();
    add_run();
    add_config();
    add_lists();
  }

  std::string file(const std::string& name) const { return folder_ / name; }

  void add_npy() {
    const auto bytes_of = [&](PixelType type, const Shape& shape) {
      const std::string path = file("made.npy");
      const auto writer = create_array_writer(path, {.shape = shape, .type = type});
      write_tensor(*writer, Box::whole(shape), at::ones(shape, at::kLong));
      writer->commit();
      return read_bytes(path);
    };
    surfaces_.push_back({"npy array",
                         file("a.npy"),
                         {bytes_of(PixelType::kFloat32, {2, 1, 4, 5}),
                          bytes_of(PixelType::kUint8, {2, 4, 5}), bytes_of(PixelType::kInt64, {7})},
                         [this] {
                           const ArrayReader array(file("a.npy"));
                           const Box whole = Box::whole(array.shape());
                           if (!whole.empty()) array.read(whole, at::empty(array.shape()));
                         }});
    bytes_of(PixelType::kFloat32, {2, 1, 4, 5});
    std::rename(file("made.npy").c_str(), file("images.npy").c_str());
    surfaces_.push_back({"npy labels",
                         file("targets.npy"),
                         {bytes_of(PixelType::kUint8, {2, 4, 5}), bytes_of(PixelType::kInt64, {2})},
                         [this] {
                           const auto data = open_dataset(
                               "files:" + file("images.npy") + "," + file("targets.npy"), {}, 0);
                           const Box whole = Box::whole(data->target_shape());
                           at::Tensor target = at::empty(
                               data->target_shape(), data->real_targets() ? at::kFloat : at::kLong);
                           data->load_target(1, whole, target);
                         }});
  }

  void add_weights() {
    values_.clear();
    for (const Parameter& parameter : graph_.parameters())
      values_.push_back(at::zeros(parameter.shape));
    save_weights(file("w.safetensors"), graph_, values_);
    write_safetensors(file("v.safetensors"),
                      {{"flag", at::ones({3}, at::kBool)}, {"x", at::ones({2, 2}, at::kHalf)}},
                      {{"format", "pt"}});
    surfaces_.push_back(
        {"weights", file("weights.safetensors"), {read_bytes(file("w.safetensors"))}, [this] {
           load_weights(file("weights.safetensors"), graph_, values_);
         }});
    surfaces_.push_back(
        {"safetensors", file("t.safetensors"), {read_bytes(file("v.safetensors"))}, [this] {
           const SafetensorsFile tensors(file("t.safetensors"));
           for (const TensorEntry& entry : tensors.entries()) tensors.tensor(entry.name);
         }});
  }

  void add_plan() {
    surfaces_.push_back(
        {"plan",
         file("plan.json"),
         {R"({"data":2,"space":[2,1],"pieces":[1,2]})",
          R"({"data":1,"stages":[[1,1],[2,1]],"micro_batches":2,"schedule":"gpipe",)"
          R"("schedule_costs":"flops"})",
          R"({"stages":[[1],[1]],"stage_of":{"enc1.conv1":0,"loss":1}})"},
         [this] {
           JobConfig config;
           config.plan = file("plan.json");
           choose_plan(config, graph_);
         }});
  }

  void add_balance() {
    surfaces_.push_back({"balance",
                         file("balance.json"),
                         {R"([["enc1.*", "dec1.conv1", "d*"], ["*", "dec1.conv*", "enc1.relu2"]])"},
                         [this] { read_balance(graph_, 2, file("balance.json")); }});
  }

  void add_checkpoint() {
    TrainingState state;
    state.tensors = {{"model.w", at::ones({3})}, {"optimiser.m", at::zeros({3})}};
    state.step = 12;
    state.metadata = {{"model", "unet2d"}, {"validations_without_best", "2"}};
    const std::string path = CheckpointStore(file("checkpoints"), 3).save(state, true);
    const auto load = [this, path] { CheckpointStore(file("checkpoints"), 3).load(path); };
    const std::string text = read_bytes(path + "/state.json");
    surfaces_.push_back({"state.json", path + "/state.json", {text}, load});
    surfaces_.push_back({"signed state.json", path + "/state.json", {text}, load, signed_again});
    surfaces_.push_back({"checkpoint tensors",
                         path + "/tensors.safetensors",
                         {read_bytes(path + "/tensors.safetensors")},
                         load});
  }

  void add_run() {
    const auto describe = [this] {
      RunFolder(file("run"))
          .write_description({.config_json = R"({"train": {"epochs": 3}})",
                              .placement_json = R"({"data": 2})",
                              .num_ranks = 2,
                              .transport = "threads",
                              .seed = 1,
                              .resumed_at = 5});
    };
    describe();
    describe();
    surfaces_.push_back(
        {"run.json", file("run/run.json"), {read_bytes(file("run/run.json"))}, describe});
    surfaces_.push_back({"metrics.csv",
                         file("run/metrics.csv"),
                         {"step,loss,dice\n1,0.5,\n2,0.25,0.75\n3,nan,inf\n4,0."},
                         [this] {
                           MetricsFile(file("run/metrics.csv"), {"loss", "dice"}, 2);
                         }});
  }

  void add_config() {
    surfaces_.push_back({"config",
                         file("run.toml"),
                         {"[model]\nname = \"unet2d:base=16\"\ninput = [1, 3, 64, 64]\n[train]\n"
                          "steps = 1_000 # many\n[optimiser]\nlearning_rate = 1e-3\n[placement]\n"
                          "replicas = 2\nspace = [2, 2]\n[run]\nfolder = 'r'\n"},
                         [this] {
                           TrainConfig config;
                           apply_layer(config, read_config_file(file("run.toml")));
                         }});
  }

  void add_lists() {
    surfaces_.push_back({"table of samples",
                         file("l.csv"),
                         {"image,image2,mask,split,weight\na.npy,b.npy,\"m.npy\",train,0.5\n",
                          "image;label\na.npy;cat\nb.npy;dog\n"},
                         [this] { list_table(file("l.csv")); }});
    surfaces_.push_back(
        {"list of samples",
         file("l.json"),
         {R"([{"image":["a.npy","b.npy"],"label":3,"split":"test","weight":2}])",
          R"({"labels":{"0":"no","1":"yes"},"training":[{"image":"a.npy","label":"m.npy"}],)"
          R"("validation":[],"test":["b.npy"]})"},
         [this] { list_json(file("l.json")); }});
  }

  const ScratchFolder folder_{ScratchFolder::Medium::kMemory};
  const Graph graph_ = build_model("unet2d:base=2,depth=2", {2, 3, 16, 16});
  std::vector<at::Tensor> values_;
  std::vector<Surface> surfaces_;
};

/// Which case hangs is said from the handler of its alarm.
char hanging_case[160];
void say_which_hangs(int) {
  const ssize_t ignored = ::write(STDERR_FILENO, hanging_case, std::strlen(hanging_case));
  ::_exit(ignored >= 0 ? 1 : 2);
}

/// What is wrong with how the file was refused; empty where it was read or refused properly.
std::string complaint(const Surface& surface, const std::string& bytes) {
  try {
    surface.read();
    return "";
  } catch (const InternalError& error) {
    return fmt::format("an internal error: {}", error.what());
  } catch (const Error& error) {
    const std::string message = error.what();
    if (!has(message, surface.path.substr(surface.path.rfind('/') + 1)))
      return fmt::format("a message without the file's name: {}", message);
    if (message.size() > kLongestMessage)
      return fmt::format("a message of {} bytes", message.size());
    if (read_bytes(surface.path) != bytes) return "a refused file that was changed";
    return "";
  } catch (const std::exception& error) {
    return fmt::format("an exception that is not Tessera's: {}", error.what());
  }
}

TEST_F(MutatedFiles, WhatIsValidIsRead) {
  for (const Surface& surface : surfaces_)
    for (const std::string& valid : surface.valid) {
      if (has(valid, "stage_of")) continue;  // names too few operators: refused, but after parsing
      SCOPED_TRACE(surface.name);
      write_bytes(surface.path, surface.finish(valid));
      EXPECT_NO_THROW(surface.read());
    }
}

TEST_F(MutatedFiles, AreReadOrRefusedByName) {
  std::signal(SIGALRM, say_which_hangs);
  const std::vector<uint64_t> seeds = attack::attack_seeds(10'000);
  for (const uint64_t seed : seeds) {
    Mutation mutation(seed);
    const Surface& surface = mutation.one_of(surfaces_);
    const std::string& valid = mutation.one_of(surface.valid);
    const std::string bytes = surface.finish(mutation.of(valid));
    write_bytes(surface.path, bytes);
    fmt::format_to_n(hanging_case, sizeof(hanging_case) - 1, "{}: hangs, {}\n", surface.name,
                     attack::repeat_with(seed));
    ::alarm(60);
    const std::string wrong = complaint(surface, bytes);
    ::alarm(0);
    EXPECT_EQ(wrong, "") << surface.name << ": " << attack::repeat_with(seed);
    write_bytes(surface.path, valid);
  }
  fmt::print("{} mutated files of {} formats\n", seeds.size(), surfaces_.size());
}

}  // namespace
}  // namespace tessera::mutated_files_test

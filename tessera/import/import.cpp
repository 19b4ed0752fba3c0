#include "tessera/import/import.h"

#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/graph/transform.h"
#include "tessera/import/archive.h"
#include "tessera/import/arrange.h"
#include "tessera/import/interpreter.h"
#include "tessera/import/model_file.h"

namespace tessera {
namespace {

/// The tensors that forward() returned, in order: one, or those in a tuple, list or dictionary.
void collect(const Symbol& symbol, const std::string& file, std::vector<TensorSymbol>* tensors) {
  if (const auto* tensor = std::get_if<std::shared_ptr<TensorSymbol>>(&symbol)) {
    tensors->push_back(**tensor);
  } else if (const auto* list = std::get_if<std::shared_ptr<ListSymbol>>(&symbol)) {
    for (const Symbol& item : (*list)->items) collect(item, file, tensors);
  } else if (const auto* tuple = std::get_if<std::shared_ptr<TupleSymbol>>(&symbol)) {
    for (const Symbol& item : (*tuple)->items) collect(item, file, tensors);
  } else if (const auto* dict = std::get_if<std::shared_ptr<DictSymbol>>(&symbol)) {
    for (const auto& item : (*dict)->items) collect(item.second, file, tensors);
  } else {
    const auto* value = std::get_if<c10::IValue>(&symbol);
    if (value && value->isNone()) return;  // an auxiliary output that is off
    throw_error<Unsupported>(
        "[{}] forward() returns {}; it must return a tensor of the network, or a tuple, list or "
        "dictionary of them",
        file, describe(symbol));
  }
}

/// Losses know batch x channels x space. Features stay features; a picture, or one number each,
/// whose channel was squeezed away gets it back.
void give_channels(Recording& recording, TensorSymbol* tensor) {
  const ValueType& type = recording.type(tensor->value);
  if (type.num_axes() > 1 && type.axes[1].kind == AxisKind::kChannel) return;
  if (type.num_axes() == 2)
    bring_alone_to_channels(recording, *tensor, 1, "output");
  else
    tensor->value = unsqueeze(recording, tensor->value, "output", 1);
}

void mark_outputs(const Symbol& result, const std::string& file, Recording* recording) {
  std::vector<TensorSymbol> tensors;
  collect(result, file, &tensors);
  if (tensors.empty()) throw_error<InvalidInput>("[{}] forward() returns no tensor", file);
  const Graph& graph = recording->graph();
  for (TensorSymbol& tensor : tensors) {
    if (!tensor.stale.empty())
      throw_error<Unsupported>("[{}] an output is read too late: {}", file, tensor.stale);
    if (const std::string why = why_not_plain(*recording, tensor); !why.empty())
      throw_error<Unsupported>("[{}] what forward() returns {}", file, why);
    plain_value(*recording, tensor, "output");
    give_channels(*recording, &tensor);
    if (graph.value(tensor.value).producer < 0)
      throw_error<InvalidInput>("[{}] forward() returns its input", file);
    for (ValueId other : graph.outputs())
      if (other == tensor.value)
        throw_error<Unsupported>("[{}] forward() returns one tensor twice; return it once", file);
    recording->add(MarkedOutput{tensor.value});
  }
}

/// What the child hands over.
struct Reading {
  Recording recording;
  std::map<std::string, std::string> ties;
  std::map<std::string, int64_t> counters;
};

/// Parameters that forward() never reads stay as they are, and are saved with the others.
void add_unread_weights(const torch::jit::Module& module, Reading* reading) {
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_floating_point() || tensor.layout() != at::kStrided) return;
    for (const Parameter& parameter : reading->recording.graph().parameters()) {
      if (parameter.name == name) return;
      const at::Tensor& given = parameter.initial.given;  // derived weights have none
      if (!given.defined() || !given.is_alias_of(tensor)) continue;
      reading->ties[name] = parameter.name;
      return;
    }
    reading->recording.add(Parameter{name,
                                     tensor.sizes().vec(),
                                     ParameterRole::kFrozen,
                                     {Initial::Kind::kGiven, 0, tensor.detach()}});
  };
  for (const auto& item : module.named_parameters()) add(item.name, item.value);
  for (const auto& item : module.named_buffers()) add(item.name, item.value);
}

/// In the child.
Reading read_module(const ModelFile& model, const Shape& input) {
  Reading reading;
  const torch::jit::Module module = load_module(model.bytes(), model.path());
  const ValueId image = reading.recording.add(AddedInput{"image", input});
  const std::string file = std::filesystem::path(model.path()).filename().string();
  Interpreter interpreter(reading.recording, file);
  try {
    mark_outputs(interpreter.run(module, image), file, &reading.recording);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string words = error.what();
    throw_error<InvalidInput>("[{}] its code does not hold together: {}", file,
                              words.substr(0, words.find('\n')));
  }
  reading.ties = interpreter.ties();
  add_unread_weights(module, &reading);
  reading.counters = interpreter.counters();
  return reading;
}

constexpr int64_t kMostNames = 1 << 20;

template <class Value>
void write_map(const std::map<std::string, Value>& map, PlainWriter& write) {
  write(static_cast<int64_t>(map.size()));
  for (const auto& [name, value] : map) write(name, value);
}

template <class Value>
std::map<std::string, Value> read_map(PlainReader& read) {
  std::map<std::string, Value> map;
  for (int64_t left = read.within(0, kMostNames); left > 0; --left) {
    std::string name;
    read(name);
    read(map[name]);
  }
  return map;
}

ImportedModel receive_model(ChildAnswer& answer, int64_t most_bytes) {
  PlainReader read([&](void* data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
      const size_t more = answer.read_some(static_cast<char*>(data) + done, bytes - done);
      if (more == 0) throw_error<InvalidInput>("it ends too early");
      done += more;
    }
  });
  ImportedModel model;
  model.graph = prune(read_recording(read, most_bytes).graph(), Losses::kKeep);
  model.ties = read_map<std::string>(read);
  model.counters = read_map<int64_t>(read);
  return model;
}

}  // namespace

ImportedModel import_torchscript(const std::string& path, const Shape& input,
                                 WithoutFilter without_filter) {
  const ModelFile file(path);
  const auto work = [&](const SendBytes& send) {
    const Reading reading = read_module(file, input);
    std::string buffer;  // few large writes
    PlainWriter write([&](const void* data, size_t bytes) {
      buffer.append(static_cast<const char*>(data), bytes);
      if (buffer.size() < (1 << 16)) return;
      send(buffer.data(), buffer.size());
      buffer.clear();
    });
    write_recording(reading.recording, write);
    write_map(reading.ties, write);
    write_map(reading.counters, write);
    send(buffer.data(), buffer.size());
  };
  ImportedModel model;
  ask_closed_child(path, file.limits(), without_filter, work, [&](ChildAnswer& answer) {
    model = receive_model(answer, file.limits().memory_bytes);
  });
  return model;
}

bool names_a_file(const std::string& model) {
  return model.ends_with(".pt") || model.ends_with(".pth") || model.ends_with(".ts") ||
         model.substr(0, model.find('=')).find('/') != std::string::npos;
}

}  // namespace tessera

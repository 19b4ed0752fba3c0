#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/quantity.h"
#include "tessera/base/standard_streams.h"
#include "tessera/cli/command.h"
#include "tessera/files/json.h"
#include "tessera/runtime/device.h"

namespace tessera::cli {
namespace devices_command {

void print_json(const std::vector<DeviceInfo>& devices) {
  nlohmann::json json{{"devices", nlohmann::json::array()}, {"why_no_gpu", why_no_gpu()}};
  for (const DeviceInfo& device : devices)
    json["devices"].push_back({{"name", device.name},
                               {"model", device.model},
                               {"details", device.details},
                               {"bytes", device.bytes},
                               {"free_bytes", device.free_bytes}});
  print_out("{}\n", json_text(json));
}

void print_table(const std::vector<DeviceInfo>& devices) {
  size_t name = 6, model = 5;
  for (const DeviceInfo& device : devices) {
    name = std::max(name, device.name.size());
    model = std::max(model, device.model.size());
  }
  print_out("{:<{}}  {:<{}}  {:>12}  {:>12}\n", "device", name, "model", model, "memory", "free");
  for (const DeviceInfo& device : devices)
    print_out("{:<{}}  {:<{}}  {:>12}  {:>12}  {}\n", device.name, name, device.model, model,
              format_bytes(device.bytes), format_bytes(device.free_bytes), device.details);
  if (const std::string reason = why_no_gpu(); !reason.empty()) print_out("no GPU: {}\n", reason);
}

}  // namespace devices_command

void add_devices(CLI::App& app, int* exit_code) {
  using namespace devices_command;
  CLI::App* command = app.add_subcommand(
      "devices", "what this machine has to compute on, for --device, and why there is no GPU");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "one JSON object on stdout")->group("Output");
  command->callback([json, exit_code] {
    const std::vector<DeviceInfo> devices = list_devices();
    if (*json)
      print_json(devices);
    else
      print_table(devices);
    *exit_code = kOk;
  });
}

}  // namespace tessera::cli

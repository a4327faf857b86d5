#include "scored/config/network_config.hpp"

#include <net/if.h>
#include <string>
#include <vector>

namespace score {

namespace {

constexpr std::uint32_t kMaxChannels = 4'096;
// Below it a message of 1 KB would no longer fit; above it Ethernet devices use no frame.
constexpr std::uint32_t kMinPayload = 1'024, kMaxPayload = 15'952;

void read_devices(ConfigSection& section, NetworkConfig& config) {
  if (!section.has("devices")) return;
  std::vector<std::string> devices;
  section.read("devices", devices);
  config.shmem = false;
  config.device = NetworkDevice::None;
  for (const std::string& device : devices) {
    if (device == "shmem") {
      config.shmem = true;
    } else if (device != "udp" && device != "ethernet") {
      section.refuse("devices", "name shmem, udp or ethernet");
    } else if (config.device != NetworkDevice::None) {
      section.refuse("devices", "one of udp and ethernet, not both");
    } else {
      config.device = device == "udp" ? NetworkDevice::Udp : NetworkDevice::Ethernet;
    }
  }
}

}  // namespace

NetworkConfig read_network_config(ConfigSection& root) {
  NetworkConfig config;
  ConfigSection section = root.section("network");
  read_devices(section, config);
  section.read("channels", config.channels, 1U, kMaxChannels);
  section.read("payload", config.payload, kMinPayload, kMaxPayload);
  section.read("interface", config.interface);
  if (config.interface.size() >= IFNAMSIZ) section.refuse("interface", "too long");
  if (config.device == NetworkDevice::Ethernet && config.interface.empty()) {
    section.refuse("devices", "ethernet needs an interface");
  }
  section.read_choice("pm_auth", config.tags, {{"key", false}, {"tag", true}});
  section.read_choice("switch_mode", config.switch_mode,
                      {{"clock", SwitchMode::Clock}, {"barrier", SwitchMode::Barrier}});
  return config;
}

}  // namespace score

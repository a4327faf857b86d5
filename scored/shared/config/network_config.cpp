#include "scored/shared/config/network_config.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <net/if.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score {

namespace {

constexpr std::uint32_t kMaxChannels = 4'096;
// A smaller payload would not hold a message of 1 KB; Ethernet devices use no larger frames.
constexpr std::uint32_t kMinPayload = 1'024, kMaxPayload = 15'952;

constexpr std::size_t kMaxLinks = 4;  // as pm::kMaxLinks
constexpr std::size_t kMaxName = 14;  // bytes of an interface in a link, as in pm::LinkConfig
constexpr std::uint32_t kMaxWeight = 255;

constexpr std::pair<std::string_view, NetworkDevice> kDevices[] = {
    {"udp", NetworkDevice::Udp},
    {"ethernet", NetworkDevice::Ethernet},
    {"ofi", NetworkDevice::Ofi}};

constexpr std::string_view kProviders[] = {"tcp", "verbs;ofi_rxm", "efa", "cxi", "shm"};
constexpr const char* kProviderNames = "use one of tcp, verbs;ofi_rxm, efa, cxi, shm";

bool is_provider(std::string_view name) {
  return std::ranges::find(kProviders, name) != std::end(kProviders);
}

bool read_device(std::string_view name, NetworkDevice& device) {
  for (const auto& [known, value] : kDevices) {
    if (known != name) continue;
    device = value;
    return true;
  }
  return false;
}

void read_devices(ConfigSection& section, NetworkConfig& config) {
  if (!section.has("devices")) return;
  std::vector<std::string> devices;
  section.read("devices", devices);
  config.shmem = false;
  config.links.clear();
  for (const std::string& name : devices) {
    NetworkLink link;
    if (name == "shmem") {
      config.shmem = true;
    } else if (!read_device(name, link.device)) {
      section.refuse("devices", "name shmem, udp, ethernet or ofi");
    } else if (!config.links.empty()) {
      section.refuse("devices", "one of udp, ethernet and ofi; name further ones in links");
    } else {
      config.links.push_back(link);
    }
  }
}

// Reads the keys of the device itself, which is the first link.
void read_first_link(ConfigSection& section, NetworkConfig& config) {
  NetworkLink first;
  section.read("interface", first.interface);
  section.read("provider", first.provider);
  if (first.interface.size() >= IFNAMSIZ) section.refuse("interface", "too long");
  if (section.has("provider") && !is_provider(first.provider)) {
    section.refuse("provider", kProviderNames);
  }
  if (config.links.empty()) return;
  NetworkLink& link = config.links.front();
  if (link.device == NetworkDevice::Ethernet && first.interface.empty()) {
    section.refuse("devices", "ethernet needs an interface");
  }
  if (link.device == NetworkDevice::Ofi && first.provider.empty()) {
    section.refuse("devices", "ofi needs a provider");
  }
  link.interface = first.interface;
  link.provider = first.provider;
}

// Parses a link: "udp", "udp:eth1", "ethernet:eth1", "ofi:tcp" or "ofi:tcp:eth1".
bool parse_link(std::string_view text, NetworkLink& link) {
  const auto words = split(text, ':');
  if (words.empty() || !read_device(words[0], link.device)) return false;
  const std::size_t at = link.device == NetworkDevice::Ofi ? 2 : 1;  // index of the interface
  if (words.size() > at + 1) return false;
  if (words.size() == at + 1) link.interface = words[at];
  if (link.device == NetworkDevice::Ethernet && link.interface.empty()) return false;
  if (link.interface.size() > kMaxName) return false;
  if (link.device != NetworkDevice::Ofi) return true;
  if (words.size() < 2 || !is_provider(words[1])) return false;
  link.provider = words[1];
  return true;
}

void read_links(ConfigSection& section, NetworkConfig& config) {
  std::vector<std::string> texts;
  section.read("links", texts);
  if (!texts.empty() && config.links.empty()) section.refuse("links", "devices names no device");
  if (texts.size() >= kMaxLinks) section.refuse("links", "at most 3");
  for (const std::string& text : texts) {
    NetworkLink link;
    if (!parse_link(text, link)) {
      section.refuse("links",
                     "use udp, udp:INTERFACE, ethernet:INTERFACE, ofi:PROVIDER or "
                     "ofi:PROVIDER:INTERFACE; providers are tcp, verbs;ofi_rxm, efa, cxi, shm");
    }
    config.links.push_back(link);
  }
  const auto is_ethernet = [](const NetworkLink& link) {
    return link.device == NetworkDevice::Ethernet;
  };
  if (std::ranges::count_if(config.links, is_ethernet) > 1) {
    section.refuse("links", "only one may be ethernet: the launcher opens rings on one interface");
  }
}

// Reads weights such as "1 255", as in an address file.
void read_weights(ConfigSection& section, NetworkConfig& config) {
  if (!section.has("weights")) return;
  std::string text;
  section.read("weights", text);
  const auto weights = split(text, ' ');
  if (weights.size() != config.links.size()) {
    return section.refuse("weights", "give one for the device and one for each of links");
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto weight = parse_number<std::uint32_t>(weights[i]);
    if (!weight || *weight == 0 || *weight > kMaxWeight) {
      return section.refuse("weights", "use numbers from 1 to 255 with a space between");
    }
    config.links[i].weight = *weight;
  }
}

// Configurations of earlier versions may name how Ethernet frames pass to the kernel.
void refuse_removed_mode(ConfigSection& section) {
  std::string mode = "ring";
  section.read("mode", mode);
  if (mode == "ring") return;
  section.refuse("mode", "use \"ring\", the packet ring, or leave it out; AF_XDP was removed");
}

}  // namespace

NetworkConfig read_network_config(ConfigSection& root) {
  NetworkConfig config;
  ConfigSection section = root.section("network");
  read_devices(section, config);
  read_first_link(section, config);
  read_links(section, config);
  read_weights(section, config);
  section.read("channels", config.channels, 1U, kMaxChannels);
  section.read("payload", config.payload, kMinPayload, kMaxPayload);
  section.read_choice("pm_auth", config.tags, {{"key", false}, {"tag", true}});
  refuse_removed_mode(section);
  section.read_choice("switch_mode", config.switch_mode,
                      {{"clock", SwitchMode::Clock}, {"barrier", SwitchMode::Barrier}});
  return config;
}

}  // namespace score

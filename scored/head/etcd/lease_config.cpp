#include "scored/head/etcd/lease_config.hpp"

#include <string_view>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kMostMembers = 9;
constexpr std::string_view kScheme = "https://";

enum class Keeper : std::uint8_t { Witnesses, Etcd };

void read_file_name(ConfigSection& section, std::string_view key, std::string& path) {
  section.read(key, path);
  if (section.has(key) && !path.starts_with('/')) section.refuse(key, "must be an absolute path");
}

void read_members(ConfigSection& section, LeaseConfig& config) {
  std::vector<std::string> urls;
  section.read("etcd", urls);
  if (urls.empty() || urls.size() > kMostMembers) {
    return section.refuse("etcd", "name the members, best three, each as \"https://HOST:PORT\"");
  }
  for (const std::string& url : urls) {
    const bool is_https = url.starts_with(kScheme);
    auto where = proto::parse_endpoint(is_https ? url.substr(kScheme.size()) : std::string());
    if (!where || where->port == 0) {
      return section.refuse("etcd", "must be a list of \"https://HOST:PORT\"");
    }
    config.etcd.push_back(*std::move(where));
  }
}

}  // namespace

LeaseConfig read_lease_config(ConfigSection& root) {
  LeaseConfig config;
  ConfigSection section = root.section("heads");
  Keeper keeper = Keeper::Witnesses;
  section.read_choice("lease", keeper, {{"witnesses", Keeper::Witnesses}, {"etcd", Keeper::Etcd}});
  if (keeper == Keeper::Witnesses) {
    for (const char* key : {"etcd", "etcd_prefix", "etcd_ca", "etcd_certificate", "etcd_key"}) {
      if (section.has(key)) section.refuse(key, "needs lease = \"etcd\"");
    }
    return config;
  }
  read_members(section, config);
  section.read("etcd_prefix", config.prefix);
  if (!config.prefix.starts_with('/') || config.prefix.ends_with('/')) {
    section.refuse("etcd_prefix", "must be a path such as \"/scored\"");
  }
  read_file_name(section, "etcd_ca", config.ca_file);
  if (config.ca_file.empty()) {
    section.refuse("etcd_ca", "name the file of the certificates that sign those of etcd");
  }
  read_file_name(section, "etcd_certificate", config.certificate_file);
  read_file_name(section, "etcd_key", config.private_key_file);
  if (config.certificate_file.empty() != config.private_key_file.empty()) {
    section.refuse("etcd_certificate", "goes with etcd_key: set both or none");
  }
  return config;
}

}  // namespace score::head

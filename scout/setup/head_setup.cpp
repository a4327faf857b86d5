#include "base/config/config.hpp"
#include "base/limits.hpp"
#include "base/os/daemon_users.hpp"
#include "base/os/fd.hpp"
#include "base/os/host_facts.hpp"
#include "base/text/hostlist.hpp"
#include "proto/transport/setup_token.hpp"
#include "proto/transport/tls_connection.hpp"
#include "scout/session/command.hpp"
#include "scout/setup/config_text.hpp"
#include "scout/setup/host.hpp"
#include "scout/setup/setup.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace score::scout {
namespace {

constexpr const char* kUnit = "scored-head.service";
constexpr std::uint16_t kDefaultPort = 7421;

// Holds the values that are already configured.
struct HeadSettings {
  std::string nodes;
  std::string listen;
  std::vector<std::string> heads;  // two, or none
};

Result<HeadSettings> read_head_settings(const std::string& text) {
  HeadSettings configured;
  auto file = ConfigFile::parse(text, kConfigFile);
  if (!file) return file.error();
  ConfigSection head = file->root().section("head");
  head.read("nodes", configured.nodes);
  head.read("listen", configured.listen);
  head.read("heads", configured.heads);
  return configured;
}

std::string host_name() {
  const auto facts = read_host_facts();
  return facts ? facts->name : "head";
}

std::uint16_t port_of(const HeadSetupOptions& options) {
  return options.port != 0 ? options.port : kDefaultPort;
}

std::string configure_head(std::string text, const HeadSetupOptions& options, bool is_new) {
  const std::string cluster = options.cluster.empty() && is_new ? host_name() : options.cluster;
  if (!cluster.empty()) {
    text = set_key(text, "head", "cluster", toml_string(cluster));
    text = set_key(text, "node", "cluster", toml_string(cluster));
  }
  if (!options.nodes.empty()) text = set_key(text, "head", "nodes", toml_string(options.nodes));
  if (!options.login_nodes.empty()) {
    text = set_key(text, "head", "login_nodes", toml_string(options.login_nodes));
  }
  if (!is_new && options.port == 0) return text;
  const auto listen = fmt::format("0.0.0.0:{}", port_of(options));
  return set_key(text, "head", "listen", toml_string(listen));
}

Status print_lines(const std::vector<std::string>& nodes, const std::string& address) {
  const auto key = read_key(kHeadKey);
  if (!key) return key.error();
  for (const auto& node : nodes) {
    const auto token = proto::new_setup_token(node, wall_now());
    const auto secret = proto::derive_setup_key(key->key, proto::setup_identity(token));
    print(fmt::format("  scored-setup node --head {} --token {}\n", address,
                      proto::format_setup_secret({token, secret})));
  }
  return {};
}

// Returns the address for the nodes to use.
std::string address_of(const HeadSetupOptions& options, std::string_view listen) {
  const std::string host = options.address.empty() ? host_name() : options.address;
  const auto where = proto::parse_endpoint(listen);
  if (!where || where->port == kDefaultPort) return host;
  return proto::format_endpoint({host, where->port});
}

Status check_options(const HeadSetupOptions& options, bool is_new) {
  if (is_new && options.nodes.empty()) {
    return fail(Errc::NotFound, "give the nodes of the cluster, such as --nodes node[00-63]");
  }
  for (const auto& list : {options.nodes, options.login_nodes}) {
    if (const auto names = expand_hostlist(list); !names) {
      return names.error().with_context("'{}' is not a list of hosts such as node[00-63]",
                                        escape_terminal(list, 80));
    }
  }
  const bool runs = run_program({"systemctl", "is-active", kUnit}).has_value();
  if (runs || is_port_free(port_of(options))) return {};
  return fail(Errc::Busy,
              "port {} is in use by a different program, which `ss -ltnp` shows; stop it, or "
              "choose a different port with --port",
              port_of(options));
}

// Restores the old configuration if the head does not start with the new one.
Status install_head(const HeadSetupOptions& options, const std::string& text,
                    const std::string& old) {
  if (auto written = write_configuration(text, "head"); !written) return written;
  auto done = exists(kHeadKey) ? give_to_daemon(kHeadKey, kHeadUser)
                               : write_key(kHeadKey, {proto::random_key(), 0}, kHeadUser);
  if (done) done = admit_networks(kUnit, options.allow);
  if (done) done = start_unit(kUnit);
  if (!done && !old.empty()) (void)replace_file(kConfigFile, old, 0644);
  return done;
}

}  // namespace

Status set_up_head(const HeadSetupOptions& options) {
  if (auto ready = check_installed(kUnit); !ready) return ready;
  const bool is_new = !exists(kHeadKey);
  if (auto sound = check_options(options, is_new); !sound) return sound;
  auto text = read_configuration();
  if (!text) return text.error();
  const std::string wanted = configure_head(*text, options, is_new);
  const auto configured = read_head_settings(wanted);
  if (!configured) return configured.error();
  if (auto done = install_head(options, wanted, *text); !done) return done;
  if (!configured->heads.empty()) {
    print(fmt::format("The head runs, as one of {}; `score info` shows which one is in charge.\n",
                      fmt::join(configured->heads, " and ")));
    return {};
  }
  const auto nodes = expand_hostlist(configured->nodes);
  if (!nodes) return nodes.error();
  print(
      fmt::format("The head runs. Within an hour, as root, run one line on each node, "
                  "in this order of nodes: {}\n",
                  configured->nodes));
  if (auto printed = print_lines(*nodes, address_of(options, configured->listen)); !printed) {
    return printed;
  }
  print("Then `scnodes` lists them here. More lines: scored-setup token NODES.\n");
  return {};
}

Status print_tokens(const HeadSetupOptions& options) {
  const auto text = read_file(kConfigFile, limits::kMaxConfigBytes);
  if (!text || !exists(kHeadKey)) {
    return fail(Errc::NotFound, "this host is not a head yet: run scored-setup head first");
  }
  const auto configured = read_head_settings(*text);
  if (!configured) return configured.error();
  const auto known = expand_hostlist(configured->nodes);
  const auto wanted = expand_hostlist(options.nodes);
  if (!known) return known.error();
  if (!wanted) return wanted.error();
  for (const auto& node : *wanted) {
    if (std::ranges::find(*known, node) != known->end()) continue;
    return fail(Errc::NotFound,
                "{} is not a node of this cluster ({}): add it with scored-setup "
                "head --nodes",
                node, configured->nodes);
  }
  return print_lines(*wanted, address_of(options, configured->listen));
}

}  // namespace score::scout

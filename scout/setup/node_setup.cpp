#include "base/async/asio.hpp"
#include "base/async/task_group.hpp"
#include "base/async/timeout.hpp"
#include "base/config/config.hpp"
#include "base/limits.hpp"
#include "base/os/daemon_users.hpp"
#include "base/os/fd.hpp"
#include "proto/frames/hello.hpp"
#include "proto/frames/parse.hpp"
#include "proto/node.pb.h"
#include "proto/transport/setup_token.hpp"
#include "proto/transport/tls_connection.hpp"
#include "scout/session/command.hpp"
#include "scout/setup/config_text.hpp"
#include "scout/setup/host.hpp"
#include "scout/setup/setup.hpp"

#include <unistd.h>

namespace score::scout {
namespace {

constexpr const char* kNodeUnit = "scored-node.service";
constexpr const char* kPort = "7421";

struct JoinOffer {
  std::string cluster;
  std::string release;  // version of the head
  ClusterFacts facts;
  Duration ahead_of_head{};
  Duration clock_error{};
  std::uint64_t key_generation = 0;
};

// Manages a connection to the head, as the holder of a token or of a node's key.
class Conversation {
 public:
  Conversation(const proto::Key& key, const std::string& identity)
      : tls_(proto::TlsContext::client(key, identity)) {}

  Status connect(const proto::TcpEndpoint& head);
  Result<JoinOffer> ask();
  Result<proto::NumberedKey> take_key();

 private:
  template <class Message>
  Result<Message> read();

  asio::io_context io_{1};
  SteadyClock clock_;
  std::unique_ptr<proto::TlsContext> tls_;
  std::shared_ptr<proto::Connection> connection_;
};

Status Conversation::connect(const proto::TcpEndpoint& head) {
  auto peer = run(io_, proto::tls_connect(*tls_, head, limits::kHandshakeDeadline, {}));
  if (!peer) return peer.error();
  connection_ = std::move(peer->connection);
  return {};
}

// Reads the next frame, which must be this message. A refusal becomes an error with the head's
// text.
template <class Message>
Result<Message> Conversation::read() {
  io_.restart();
  const auto frame = run(
      io_, with_timeout(clock_, limits::kRequestDeadline, connection_->read(proto::Role::Head)));
  if (!frame) return frame.error();
  if (const auto failed = proto::parse<wire::Failed>(*frame)) {
    return fail(Errc::Denied, "the head refuses: {}",
                escape_terminal(failed->error().text(), limits::kMaxErrorTextBytes));
  }
  return proto::parse<Message>(*frame);
}

Result<JoinOffer> Conversation::ask() {
  wire::SetupHello hello;
  hello.set_lowest_version(proto::spoken_versions().lowest);
  hello.set_highest_version(proto::spoken_versions().highest);
  hello.set_release(SCORE_VERSION);
  const WallTime before = wall_now();
  proto::send(*connection_, hello);
  const auto message = read<wire::SetupOffer>();
  if (!message) return message.error();
  const WallTime after = wall_now();
  JoinOffer offer;
  offer.cluster = message->cluster();
  offer.release = message->release();
  offer.facts.node = message->node();
  offer.facts.payload_bytes = message->payload_bytes();
  for (const auto& user : message->users()) offer.facts.users.push_back({user.name(), user.uid()});
  offer.key_generation = message->key_generation();
  offer.clock_error = (after - before) / 2;
  const Duration middle = before.time_since_epoch() + offer.clock_error;
  offer.ahead_of_head = middle - Duration(message->now_wall_ns());
  return offer;
}

Result<proto::NumberedKey> Conversation::take_key() {
  proto::send(*connection_, wire::TakeNodeKey());
  const auto message = read<wire::NodeKey>();
  if (!message) return message.error();
  std::array<std::uint8_t, proto::kKeyBytes> bytes{};
  if (message->key().size() != bytes.size()) {
    return fail(proto::WireErrc::BadMessage, "NodeKey.key is not {} bytes long", bytes.size());
  }
  std::copy(message->key().begin(), message->key().end(), bytes.begin());
  return proto::NumberedKey{proto::Key(bytes), message->generation()};
}

Error explain(const Error& error, const proto::TcpEndpoint& head, const std::string& node) {
  const std::string where = proto::format_endpoint(head);
  if (error.is(proto::WireErrc::BadPeer) || error.is(Errc::Closed)) {
    return fail(
        Errc::Denied,
        "the head at {} refuses the token: it was used, is older than an hour, "
        "or is for a different cluster; `scored-setup token {}` on the head makes a new one",
        where, node);
  }
  if (error.is(Errc::Timeout)) {
    return fail(Errc::Timeout,
                "no answer from {}: a firewall drops the packets, or the head does "
                "not admit this network (scored-setup head --allow NETWORK)",
                where);
  }
  return fail(error.code(),
              "cannot connect to {} ({}): check the address, and `systemctl status "
              "scored-head` there",
              where, error.context());
}

Result<proto::TcpEndpoint> parse_head(const std::string& text) {
  const bool has_port = text.find(':') != std::string::npos;
  auto where = proto::parse_endpoint(has_port ? text : text + ":" + kPort);
  if (!where)
    return fail(Errc::Malformed, "--head '{}': give HOST or HOST:PORT", escape_terminal(text, 80));
  return where;
}

// Returns the head of the command line; for a host that is a node already, the configured head.
std::string head_of(const NodeSetupOptions& options) {
  if (!options.head.empty()) return options.head;
  std::string head;
  const auto text = read_configuration();
  auto file = text ? ConfigFile::parse(*text, kConfigFile) : text.error();
  if (file) file->root().section("node").read("head", head);
  return head;
}

// Returns the addresses of the heads, including those in the configuration, and of the name servers
// that the daemon uses.
std::vector<std::string> addresses_of_others(const std::string& head) {
  std::vector<std::string> heads;
  const auto text = read_configuration();
  auto file = text ? ConfigFile::parse(*text, kConfigFile) : text.error();
  if (file) file->root().section("node").read("heads", heads);
  std::vector<std::string> addresses = addresses_of(head);
  for (const auto& one : heads) {
    const auto where = proto::parse_endpoint(one);
    const auto more = where ? addresses_of(where->host) : std::vector<std::string>{};
    addresses.insert(addresses.end(), more.begin(), more.end());
  }
  const auto resolver = read_file("/etc/resolv.conf", limits::kMaxConfigBytes);
  const auto servers = resolver ? name_servers(*resolver) : std::vector<std::string>{};
  addresses.insert(addresses.end(), servers.begin(), servers.end());
  return addresses;
}

std::string configure_node(std::string text, const NodeSetupOptions& options,
                           const JoinOffer& offer, const proto::TcpEndpoint& head) {
  text = set_key(text, "node", "cluster", toml_string(offer.cluster));
  text = set_key(text, "node", "head", toml_string(proto::format_endpoint(head)));
  if (!options.name.empty()) text = set_key(text, "node", "name", toml_string(options.name));
  if (options.login) {
    text = set_key(text, "node", "login_socket", toml_string("/run/scored/head.sock"));
  }
  return text;
}

// Prints the findings. Returns an error if the host cannot become a node.
Status check(const NodeSetupOptions& options, const JoinOffer& offer, const std::string& head) {
  HostState host =
      read_host(head, options.ignore_users ? std::vector<NamedUser>{} : offer.facts.users);
  if (!options.name.empty()) host.name = options.name;
  host.ahead_of_head = offer.ahead_of_head;
  host.clock_error = offer.clock_error;
  const auto findings = check_host(host, offer.facts);
  std::string fatal;
  for (const auto& finding : findings) {
    if (finding.is_fatal && fatal.empty()) {
      fatal = finding.text;
    } else {
      tell(fmt::format("scored-setup node: {}{}", finding.is_fatal ? "" : "note: ", finding.text));
    }
  }
  return fatal.empty() ? Status() : fail(Errc::WrongState, "{}", fatal);
}

// An earlier run has stored the key, which must still be that of this node at this head.
Status check_stored_key(const proto::SetupToken& token, const proto::TcpEndpoint& head) {
  const auto key = read_key(kNodeKey);
  if (!key) return key.error();
  Conversation conversation(key->key, proto::format_node_identity({token.node, key->number}));
  const auto connected = conversation.connect(head);
  if (connected) return {};
  if (!connected.error().is(proto::WireErrc::BadPeer) && !connected.error().is(Errc::Closed)) {
    return explain(connected.error(), head, token.node);
  }
  return fail(Errc::Exists,
              "{} is the key of a different node or cluster: remove it if this host leaves "
              "that cluster, and run the command again",
              kNodeKey);
}

Status install_node(const NodeSetupOptions& options, const proto::SetupSecret& secret,
                    const proto::TcpEndpoint& head) {
  Conversation conversation(secret.key, proto::setup_identity(secret.token));
  const auto stored = exists(kNodeKey) ? read_key(kNodeKey) : fail(Errc::NotFound, "no key");
  if (auto connected = conversation.connect(head); !connected) {
    return explain(connected.error(), head, secret.token.node);
  }
  const auto offer = conversation.ask();
  const bool has_key = offer && stored && stored->number >= offer->key_generation;
  if (has_key) return check_stored_key(secret.token, head);
  if (!offer) {
    return offer.error().is(Errc::Denied) ? Status(offer.error())
                                          : explain(offer.error(), head, secret.token.node);
  }
  if (auto fit = check(options, *offer, head.host); !fit) return fit;
  const auto text = read_configuration();
  if (!text) return text.error();
  auto written = write_configuration(configure_node(*text, options, *offer, head), "node");
  if (!written) return written;
  const auto key = conversation.take_key();
  if (!key) return key.error();
  return write_key(kNodeKey, *key, kNodeUser);
}

}  // namespace

Status set_up_node(const NodeSetupOptions& options) {
  if (auto ready = check_installed(kNodeUnit); !ready) return ready;
  const auto head = parse_head(head_of(options));
  if (!head) return head.error();
  const auto secret = proto::parse_setup_secret(options.token);
  if (!secret) {
    return fail(Errc::Malformed,
                "--token: this is not a whole token; copy the line that "
                "scored-setup printed on the head");
  }
  auto done = install_node(options, *secret, *head);
  // A token that an interrupted run has used is not valid any more.
  if (!done && done.error().is(Errc::Denied) && exists(kNodeKey)) {
    done = check_stored_key(secret->token, *head);
  }
  if (done && exists(kNodeKey)) done = give_to_daemon(kNodeKey, kNodeUser);
  if (done) done = admit_networks(kNodeUnit, addresses_of_others(head->host));
  if (done) done = start_unit("scored-launcher.service");
  if (done) done = start_unit(kNodeUnit);
  if (done) print(fmt::format("{} runs; `scnodes` on the head lists it\n", secret->token.node));
  return done;
}

}  // namespace score::scout

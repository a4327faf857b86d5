#include "scored/head/nodes/setup_manager.hpp"

#include "base/async/timeout.hpp"
#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "proto/frames/hello.hpp"
#include "proto/frames/parse.hpp"
#include "proto/transport/setup_token.hpp"
#include "scored/head/config/version.hpp"

#include <algorithm>
#include <pwd.h>

namespace score::head {
namespace {

constexpr std::size_t kMaxUsers = 4'096;  // in one offer
constexpr Duration kTimeout = 60s;        // for the host's checks between two frames
constexpr uid_t kFirstUser = 1'000;       // lower uids are the system's (Debian policy 9.2.2)
constexpr uid_t kLastUser = 59'999;

std::int64_t seconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

// Adds the users of this host who may run jobs; adds none if the name service does not list its
// users.
void add_users(wire::SetupOffer& offer) {
  ::setpwent();
  std::size_t count = 0;
  while (const passwd* user = ::getpwent()) {
    if (user->pw_uid < kFirstUser || user->pw_uid > kLastUser || ++count > kMaxUsers) continue;
    wire::SetupUser& named = *offer.add_users();
    named.set_name(user->pw_name);
    named.set_uid(user->pw_uid);
  }
  ::endpwent();
}

asio::awaitable<void> refuse(std::shared_ptr<proto::Connection> connection, std::string text) {
  wire::Failed failed;
  failed.mutable_error()->set_text(std::move(text));
  proto::send(*connection, failed);
  co_await connection->drained(1);
  connection->close();
}

}  // namespace

bool is_valid_token(const HeadConfig& config, std::string_view identity, WallTime now) {
  const auto token = proto::parse_setup_identity(identity);
  if (!token || std::ranges::find(config.nodes, token->node) == config.nodes.end()) return false;
  const std::int64_t latest = seconds(now + proto::kSetupLifetime);
  return token->expires_s > seconds(now) && token->expires_s <= latest;
}

SetupManager::SetupManager(const HeadConfig& config, const proto::KeyRing& ring,
                           const NodeKeys& keys, std::string used_file)
    : config_(config), ring_(ring), keys_(keys), used_file_(std::move(used_file)) {
  const auto text = read_file(used_file_, limits::kMaxConfigBytes);
  if (!text) return;  // the first start
  for (const std::string_view line : split(*text, '\n')) {
    const auto token = proto::parse_setup_identity(line);
    if (token) used_.emplace(line, token->expires_s);
  }
}

std::optional<proto::Key> SetupManager::key_of(std::string_view identity, WallTime now) const {
  if (!admits(identity, now)) return std::nullopt;
  return proto::derive_setup_key(ring_.newest().key, identity);
}

bool SetupManager::admits(std::string_view identity, WallTime now) const {
  return is_valid_token(config_, identity, now) && !used_.contains(identity);
}

Status SetupManager::use(const std::string& identity, WallTime now) {
  const auto token = proto::parse_setup_identity(identity);
  if (!token) return token.error();
  if (used_.contains(identity)) return fail(Errc::Exists, "the setup token has been used");
  auto used = used_;
  std::erase_if(used, [&](const auto& entry) { return entry.second <= seconds(now); });
  used.emplace(identity, token->expires_s);
  std::string text;
  for (const auto& [name, expires] : used) text += name + "\n";
  if (auto stored = replace_file(used_file_, text, 0600); !stored) return stored;
  used_ = std::move(used);
  if (on_used_) on_used_(text);
  return {};
}

wire::SetupOffer SetupManager::offer(const std::string& node) const {
  wire::SetupOffer offer;
  offer.set_release(kVersion);
  offer.set_cluster(config_.cluster);
  offer.set_node(node);
  offer.set_key_generation(keys_.wanted(node));
  offer.set_now_wall_ns(wall_now().time_since_epoch().count());
  offer.set_payload_bytes(config_.network.links.empty() ? 0 : config_.network.payload);
  add_users(offer);
  return offer;
}

asio::awaitable<void> SetupManager::serve(std::string identity,
                                          std::shared_ptr<proto::Connection> connection,
                                          Clock& clock) {
  const std::string node = proto::parse_setup_identity(identity)->node;
  const auto first = co_await with_timeout(clock, kTimeout, connection->read(proto::Role::Setup));
  if (!first) co_return connection->close();
  const auto hello = proto::parse<wire::SetupHello>(*first);
  if (!hello) co_return connection->close();
  proto::VersionRange theirs;
  theirs.lowest = hello->lowest_version();
  theirs.highest = hello->highest_version();
  const auto version = proto::choose_version(theirs, "the node's scored-setup");
  if (!version) {
    co_return co_await refuse(connection, fmt::format("{}; install release {} on {}",
                                                      version.error().context(), kVersion, node));
  }
  wire::SetupOffer answer = offer(node);
  answer.set_version(*version);
  proto::send(*connection, answer);
  const auto second = co_await with_timeout(clock, kTimeout, connection->read(proto::Role::Setup));
  if (!second || !proto::parse<wire::TakeNodeKey>(*second)) co_return connection->close();
  if (const auto used = use(identity, wall_now()); !used) {
    log_warning("Refused setup token", kv("node", node), kv("err", used.error()));
    co_return co_await refuse(connection, used.error().message());
  }
  wire::NodeKey reply;
  const std::uint64_t generation = keys_.wanted(node);
  const auto key = ring_.node_key({node, generation});
  if (!key) co_return co_await refuse(connection, "the node's key was retired; rotate it first");
  reply.set_key(key->bytes().data(), key->bytes().size());
  reply.set_generation(generation);
  proto::send(*connection, reply);
  log_notice("Sent a new node its key", kv("node", node), kv("peer", connection->peer()));
  co_await connection->drained(1);
  connection->close();
}

}  // namespace score::head

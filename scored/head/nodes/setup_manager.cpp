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

asio::awaitable<void> refuse(AnswerChannel answers, std::string text) {
  wire::Failed failed;
  failed.mutable_error()->set_text(std::move(text));
  answers.show(failed);
  const auto connection = answers.frames();
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

SetupManager::SetupManager(Parts parts, const std::string& directory)
    : parts_(parts), file_(parts.commits, directory, kUsedTokensFile) {
  const auto text = read_file(file_.path(), limits::kMaxConfigBytes);
  if (!text) return;  // the first start
  for (const std::string_view line : split(*text, '\n')) {
    const auto token = proto::parse_setup_identity(line);
    if (token) used_.emplace(line, token->expires_s);
  }
  file_.share();
}

std::optional<proto::Key> SetupManager::key_of(std::string_view identity, WallTime now) const {
  if (!admits(identity, now)) return std::nullopt;
  return proto::derive_setup_key(parts_.ring.newest().key, identity);
}

bool SetupManager::admits(std::string_view identity, WallTime now) const {
  return is_valid_token(parts_.config, identity, now) && !used_.contains(identity);
}

void SetupManager::use(const std::string& identity, WallTime now, CommitLog::Confirmed done) {
  const auto next = std::make_shared<Expiries>();
  auto make = [this, next, identity, now]() -> Result<std::string> {
    const auto token = proto::parse_setup_identity(identity);
    if (!token) return token.error();
    if (used_.contains(identity)) return fail(Errc::Exists, "the setup token has been used");
    *next = used_;
    std::erase_if(*next, [&](const auto& entry) { return entry.second <= seconds(now); });
    next->emplace(identity, token->expires_s);
    std::string text;
    for (const auto& [name, expires] : *next) text += name + "\n";
    return text;
  };
  file_.change(std::move(make), [this, next, done = std::move(done)](const auto& logged) {
    if (logged) used_ = *next;
    done(logged);
  });
}

asio::awaitable<Result<LogReceipt>> SetupManager::use_up(std::string identity) {
  using Channel = asio::experimental::channel<void(boost::system::error_code)>;
  const auto executor = co_await asio::this_coro::executor;
  const auto is_done = std::make_shared<Channel>(executor, 1);
  const auto result = std::make_shared<std::optional<Result<LogReceipt>>>();
  use(identity, wall_now(), [is_done, result](const Result<LogReceipt>& logged) {
    result->emplace(logged);
    is_done->try_send(boost::system::error_code());
  });
  co_await is_done->async_receive(asio::use_awaitable);
  co_return **result;
}

wire::SetupOffer SetupManager::offer(const std::string& node) const {
  wire::SetupOffer offer;
  offer.set_release(kVersion);
  offer.set_cluster(parts_.config.cluster);
  offer.set_node(node);
  offer.set_key_generation(parts_.keys.wanted(node));
  offer.set_now_wall_ns(wall_now().time_since_epoch().count());
  offer.set_payload_bytes(parts_.config.network.links.empty() ? 0 : parts_.config.network.payload);
  add_users(offer);
  return offer;
}

asio::awaitable<void> SetupManager::serve(std::string identity,
                                          std::shared_ptr<proto::Connection> connection,
                                          Clock& clock) {
  const std::string node = proto::parse_setup_identity(identity)->node;
  const AnswerChannel answers(connection, parts_.lease);
  const auto first = co_await with_timeout(clock, kTimeout, connection->read(proto::Role::Setup));
  if (!first) co_return connection->close();
  const auto hello = proto::parse<wire::SetupHello>(*first);
  if (!hello) co_return connection->close();
  proto::VersionRange theirs;
  theirs.lowest = hello->lowest_version();
  theirs.highest = hello->highest_version();
  const auto version = proto::choose_version(theirs, "the node's scored-setup");
  if (!version) {
    co_return co_await refuse(answers, fmt::format("{}; install release {} on {}",
                                                   version.error().context(), kVersion, node));
  }
  wire::SetupOffer answer = offer(node);
  answer.set_version(*version);
  answers.show(answer);
  const auto second = co_await with_timeout(clock, kTimeout, connection->read(proto::Role::Setup));
  if (!second || !proto::parse<wire::TakeNodeKey>(*second)) co_return connection->close();
  co_await give_key(identity, answers);
}

asio::awaitable<void> SetupManager::give_key(std::string identity, AnswerChannel answers) {
  const std::string node = proto::parse_setup_identity(identity)->node;
  const auto connection = answers.frames();
  const auto used = co_await use_up(identity);
  if (!used) {
    log_warning("Refused setup token", kv("node", node), kv("err", used.error()));
    co_return co_await refuse(answers, used.error().message());
  }
  wire::NodeKey reply;
  const std::uint64_t generation = parts_.keys.wanted(node);
  const auto key = parts_.ring.node_key({node, generation});
  if (!key) co_return co_await refuse(answers, "the node's key was retired; rotate it first");
  reply.set_key(key->bytes().data(), key->bytes().size());
  reply.set_generation(generation);
  answers.confirm(reply, *used);
  log_notice("Sent a new node its key", kv("node", node), kv("peer", connection->peer()));
  co_await connection->drained(1);
  connection->close();
}

}  // namespace score::head

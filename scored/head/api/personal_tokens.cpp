#include "scored/head/api/personal_tokens.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/shares.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace score::head {
namespace {

constexpr std::string_view kPrefix = "scored_";  // lets scanners of secrets recognize a token

std::int64_t seconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string hex_of(const proto::Digest& digest) {
  return proto::format_key(proto::Key(digest));
}

// A line is "NUMBER USER EXPIRES r|w HASH NAME".
std::string format_line(std::uint64_t number, const PersonalToken& token) {
  return fmt::format("{} {} {} {} {} {}\n", number, token.user, seconds(token.expires),
                     token.only_reads ? 'r' : 'w', hex_of(token.hash), token.name);
}

std::optional<std::pair<std::uint64_t, PersonalToken>> parse_line(std::string_view line) {
  const auto words = split(line, ' ');
  if (words.size() != 6) return std::nullopt;
  const auto number = parse_number<std::uint64_t>(words[0]);
  const auto user = parse_number<std::uint32_t>(words[1]);
  const auto expires = parse_number<std::int64_t>(words[2]);
  const auto hash = proto::parse_key(words[4]);
  constexpr std::int64_t kMostSeconds = 9'000'000'000;  // more would overflow as nanoseconds
  if (!number || !user || !expires || *expires < 0 || *expires > kMostSeconds || !hash) {
    return std::nullopt;
  }
  PersonalToken token;
  token.user = UserId(*user);
  token.name = words[5];
  token.expires = WallTime(std::chrono::seconds(*expires));
  token.only_reads = words[3] == "r";
  token.hash = hash->bytes();
  return std::pair(*number, std::move(token));
}

Status check_name(std::string_view name) {
  const bool is_plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
  if (is_plain && !name.empty() && name.size() <= PersonalTokens::kMostNameBytes) return {};
  return fail(Errc::Malformed,
              "the name of a token has 1 to {} lower-case letters, digits, '-', '_' and '.'",
              PersonalTokens::kMostNameBytes);
}

}  // namespace

PersonalTokens::PersonalTokens(CommitLog& commits, const std::string& directory)
    : commits_(commits), file_(commits, directory, kPersonalTokensFile) {
  const auto text = read_file(file_.path(), limits::kMaxConfigBytes);
  if (!text) return;  // no token was ever made
  for (const std::string_view line : split(*text, '\n')) {
    if (auto token = parse_line(line)) tokens_.insert(*std::move(token));
  }
}

Result<std::string> PersonalTokens::add(Tokens& tokens, UserId user,
                                        const wire::ManageTokens& command, WallTime now) const {
  if (auto checked = check_name(command.name()); !checked) return checked.error();
  const Duration life(command.lifetime_ns());
  if (life < 1min || life > kLongestLife) {
    return fail(Errc::Malformed, "a token lasts from one minute to 366 days");
  }
  const auto of_user = static_cast<std::size_t>(
      std::ranges::count_if(tokens, [&](const auto& entry) { return entry.second.user == user; }));
  if (of_user >= shares::kPersonalTokens.per_user ||
      tokens.size() >= shares::kPersonalTokens.places) {
    return fail(Errc::Busy, "you have {} tokens; revoke one (score token revoke NUMBER)", of_user);
  }
  const std::uint64_t number = tokens.empty() ? 1 : tokens.rbegin()->first + 1;
  std::string secret = proto::format_key(proto::random_key());
  PersonalToken token;
  token.user = user;
  token.name = command.name();
  token.expires = now + life;
  token.only_reads = command.only_reads();
  token.hash = proto::digest_of(secret);
  tokens.emplace(number, std::move(token));
  return fmt::format("{}{}_{}", kPrefix, number, secret);
}

void PersonalTokens::execute(const Peer& peer, const wire::ManageTokens& command, WallTime now,
                             const Reply& reply) {
  const UserId user = peer.user;
  const auto secret = std::make_shared<std::string>();
  const auto answer = [this, user, now, reply, secret](const Result<LogReceipt>& logged) {
    if (!logged) return reply(logged.error());
    wire::TokenList list = list_of(user, now);
    list.set_secret(*secret);
    reply(Logged<wire::TokenList>{std::move(list), *logged});
  };
  if (command.what() == wire::ManageTokens::LIST) return commits_.confirm({}, answer);
  const auto next = std::make_shared<Tokens>();
  auto make = [this, next, secret, user, command, now]() -> Result<std::string> {
    *next = tokens_;
    std::erase_if(*next, [&](const auto& entry) { return entry.second.expires <= now; });
    if (command.what() == wire::ManageTokens::NEW) {
      auto added = add(*next, user, command, now);
      if (!added) return added.error();
      *secret = *std::move(added);
    } else {
      const auto found = next->find(command.token());
      if (found == next->end() || found->second.user != user) {
        return fail(Errc::NotFound, "you have no token {}", command.token());
      }
      next->erase(found);
    }
    std::string text;
    for (const auto& [number, token] : *next) text += format_line(number, token);
    return text;
  };
  const bool is_new = command.what() == wire::ManageTokens::NEW;
  file_.change(std::move(make), [this, next, answer, is_new, name = peer.name](const auto& logged) {
    if (logged) {
      tokens_ = *next;
      log_info(is_new ? "Made a personal token" : "Revoked a personal token", kv("user", name));
    }
    answer(logged);
  });
}

const PersonalToken* PersonalTokens::find(std::string_view text, WallTime now) const {
  if (!text.starts_with(kPrefix)) return nullptr;
  text.remove_prefix(kPrefix.size());
  const auto end = text.find('_');
  const auto number = parse_number<std::uint64_t>(text.substr(0, end));
  if (end == text.npos || !number) return nullptr;
  const auto found = tokens_.find(*number);
  if (found == tokens_.end() || found->second.expires <= now) return nullptr;
  // Comparing hashes leaks nothing that helps to guess the secret.
  return proto::digest_of(text.substr(end + 1)) == found->second.hash ? &found->second : nullptr;
}

wire::TokenList PersonalTokens::list_of(UserId user, WallTime now) const {
  wire::TokenList list;
  for (const auto& [number, token] : tokens_) {
    if (token.user != user || token.expires <= now) continue;
    wire::TokenState& state = *list.add_tokens();
    state.set_token(number);
    state.set_name(token.name);
    state.set_expires_wall_ns(Duration(token.expires.time_since_epoch()).count());
    state.set_only_reads(token.only_reads);
  }
  return list;
}

}  // namespace score::head

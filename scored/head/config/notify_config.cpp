#include "scored/head/config/notify_config.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "monitor/model/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr Duration kLeastTimeout = 1s;
constexpr Duration kMostTimeout = 300s;
constexpr std::size_t kMaxUrlBytes = 2'000;

bool is_visible(char letter) {
  return letter > ' ' && letter < 0x7F;
}

bool is_letter_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9');
}

bool is_host(std::string_view host) {
  if (host.empty() || host.size() > 253 || host.front() == '-' || host.front() == '.') return false;
  return std::ranges::all_of(host, [](char letter) {
    return is_letter_or_digit(letter) || letter == '-' || letter == '.';
  });
}

bool is_ipv6(const std::string& host) {
  in6_addr parsed{};
  return inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

bool is_this_host(const std::string& host) {
  in_addr parsed{};
  const bool is_ipv4 = inet_pton(AF_INET, host.c_str(), &parsed) == 1;
  return host == "localhost" || host == "::1" || (is_ipv4 && host.starts_with("127."));
}

// Takes "host", "host:port" or "[::1]:port" apart. Returns false if it is none of them.
bool read_authority(std::string_view text, WebAddress& out) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == text.npos) return false;
    out.host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (!is_ipv6(out.host)) return false;
  } else {
    const auto colon = text.find(':');
    out.host = text.substr(0, colon);
    text.remove_prefix(colon == text.npos ? text.size() : colon);
    if (!is_host(out.host)) return false;
  }
  if (text.empty()) return true;
  if (!text.starts_with(':')) return false;
  const auto port = parse_number<std::uint16_t>(text.substr(1));
  if (!port || *port == 0) return false;
  out.port = *port;
  return true;
}

void read_program(ConfigSection& section, std::string_view key, std::string& path) {
  section.read(key, path);
  if (!path.empty() && !path.starts_with('/')) section.refuse(key, "must be an absolute path");
}

Webhook read_webhook(ConfigSection& section) {
  Webhook out;
  section.read("url", out.url);
  auto address = parse_web_address(out.url);
  if (address) {
    out.address = *std::move(address);
  } else {
    section.refuse("url", plain_text(address.error()));
  }
  std::vector<std::string> events = {"begin", "end", "requeue", "node_down", "node_up"};
  section.read("events", events);
  if (events.empty()) section.refuse("events", "name at least one event");
  for (const std::string& event : events) {
    if (add_notice_word(event, out.choice)) continue;
    section.refuse("events", fmt::format("unknown event '{}'", escape_terminal(event, 80)));
  }
  read_program(section, "token_file", out.token_file);
  read_program(section, "ca_file", out.ca_file);
  if (!out.ca_file.empty() && address && !out.address.has_tls) {
    section.refuse("ca_file", "the url is not https");
  }
  return out;
}

}  // namespace

Result<WebAddress> parse_web_address(std::string_view url) {
  const auto bad = [&](std::string_view why) {
    return fail(Errc::Malformed, "'{}': {}", escape_terminal(url, 80), why);
  };
  if (url.size() > kMaxUrlBytes) return bad("too long");
  WebAddress out;
  constexpr std::string_view kSecure = "https://";
  constexpr std::string_view kPlain = "http://";
  out.has_tls = url.starts_with(kSecure);
  if (!out.has_tls && !url.starts_with(kPlain)) return bad("must begin with https://");
  out.port = out.has_tls ? 443 : 80;
  std::string_view rest = url.substr(out.has_tls ? kSecure.size() : kPlain.size());
  const auto slash = rest.find_first_of("/?");
  if (!read_authority(rest.substr(0, slash), out)) return bad("expected https://HOST[:PORT]/PATH");
  out.target = slash == rest.npos ? "" : std::string(rest.substr(slash));
  if (!out.target.starts_with('/')) out.target.insert(0, "/");
  const bool is_sound = std::ranges::all_of(out.target, is_visible);
  if (!is_sound || out.target.find('#') != std::string::npos) {
    return bad("its path has a character that must be encoded as %XX");
  }
  if (!out.has_tls && !is_this_host(out.host)) {
    return bad("http is accepted only for this host; use https");
  }
  return out;
}

NotifyConfig read_notify_config(ConfigSection section) {
  NotifyConfig out;
  read_program(section, "sendmail", out.sendmail);
  read_program(section, "command", out.command);
  if (!out.sendmail.empty() && !out.command.empty()) {
    section.refuse("command", "set sendmail or command, not both");
  }
  section.read("from", out.from);
  if (!out.from.empty()) {
    if (auto sound = check_mail_address(out.from); !sound) {
      section.refuse("from", plain_text(sound.error()));
    }
  }
  section.read("timeout", out.timeout, kLeastTimeout, kMostTimeout);
  for (ConfigSection& webhook : section.sections("webhook")) {
    out.webhooks.push_back(read_webhook(webhook));
  }
  if (out.webhooks.size() > kMaxWebhooks) {
    section.refuse("webhook", fmt::format("more than {} webhooks", kMaxWebhooks));
  }
  return out;
}

std::vector<std::string> notify_warnings(const NotifyConfig& config) {
  std::vector<std::string> out;
  for (const auto& [key, path] :
       {std::pair("sendmail", config.sendmail), std::pair("command", config.command)}) {
    if (path.empty() || ::access(path.c_str(), X_OK) == 0) continue;
    out.push_back(fmt::format("[notify] {}: {}: {}; no mail can be sent", key,
                              escape_terminal(path, 200), errno_code(errno).message()));
  }
  for (const Webhook& webhook : config.webhooks) {
    const std::string name = fmt::format("[[notify.webhook]] {}", escape_terminal(webhook.url, 80));
    if (!webhook.token_file.empty()) {
      const auto token = monitor::load_token(webhook.token_file);
      if (!token) {
        out.push_back(
            fmt::format("{}: token_file: {}; it gets no notices", name, plain_text(token.error())));
      }
    }
    if (!webhook.ca_file.empty() && ::access(webhook.ca_file.c_str(), R_OK) != 0) {
      out.push_back(fmt::format("{}: ca_file: {}: {}; it gets no notices", name,
                                escape_terminal(webhook.ca_file, 200),
                                errno_code(errno).message()));
    }
  }
  return out;
}

}  // namespace score::head

#pragma once
// NotifyConfig is the table [notify] of the configuration file: how the head sends mail about jobs,
// and the web services that it notifies of jobs and nodes. See scored.toml(5).

#include "base/config/config.hpp"
#include "base/request/notices.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

inline constexpr std::size_t kMaxWebhooks = 8;

// WebAddress is an address that documents are sent to.
struct WebAddress {
  bool has_tls = false;
  std::string host;  // a name or an IP address, without brackets
  std::uint16_t port = 0;
  std::string target;  // path and query: "/hook?x=1"

  friend bool operator==(const WebAddress&, const WebAddress&) = default;
};

// Parses "https://host[:port][/path]". Without TLS the host must be this one (localhost, 127.x.x.x
// or [::1]), because the document and the token would be readable on the network. Errors:
// Malformed.
[[nodiscard]] Result<WebAddress> parse_web_address(std::string_view url);

struct Webhook {
  std::string url;  // as in the file
  WebAddress address;
  NoticeChoice choice;
  std::string token_file;  // its first line is sent as a bearer token; empty: none
  std::string ca_file;     // PEM, the issuers to trust; empty: those of this host

  friend bool operator==(const Webhook&, const Webhook&) = default;
};

struct NotifyConfig {
  std::string sendmail;    // program with sendmail's interface; empty: none
  std::string command;     // program that gets the notice as JSON instead; empty: none
  std::string from;        // sender of mail; empty: the mail program's choice
  Duration timeout = 30s;  // of one run of the program, and of one request
  std::vector<Webhook> webhooks;

  // Returns whether users can be sent mail.
  [[nodiscard]] bool has_mail() const { return !sendmail.empty() || !command.empty(); }

  friend bool operator==(const NotifyConfig&, const NotifyConfig&) = default;
};

// Reads the table. Faults are recorded in the section.
[[nodiscard]] NotifyConfig read_notify_config(ConfigSection section);

// Returns what is wrong now with the files that the table names, one line each. The head starts in
// spite of them, because they do not concern its jobs.
[[nodiscard]] std::vector<std::string> notify_warnings(const NotifyConfig& config);

}  // namespace score::head

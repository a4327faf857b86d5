// Only the status line of the reply matters. So a service that sends a gigabyte, or says nothing
// after the first line, costs no memory, and no HTTP library is compiled for TLS streams.
#include "scored/head/notices/web_reply.hpp"

#include "base/text.hpp"
#include "scored/head/config/version.hpp"

#include <fmt/format.h>

namespace score::head {
namespace {

constexpr std::size_t kMaxStatusLine = 1'024;

// Parses "HTTP/1.1 200 OK".
std::optional<int> status_of(std::string_view line) {
  if (!line.starts_with("HTTP/1.") || line.size() < 12 || line[8] != ' ') return std::nullopt;
  if (line.size() > 12 && line[12] != ' ') return std::nullopt;
  const auto status = parse_number<unsigned>(line.substr(9, 3));
  if (!status || *status < 100 || *status > 599) return std::nullopt;
  return static_cast<int>(*status);
}

std::string host_of(const WebAddress& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? fmt::format("[{}]", address.host) : address.host;
  const bool is_usual = address.port == (address.has_tls ? 443 : 80);
  return is_usual ? host : fmt::format("{}:{}", host, address.port);
}

}  // namespace

std::string web_request(const WebAddress& address, const Notice& notice, std::string_view token) {
  std::string text = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: scored/{}\r\nAccept: */*\r\n"
      "Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n"
      "Idempotency-Key: {}\r\n",
      address.target, host_of(address), kVersion, notice.text.size(), notice.id);
  if (!token.empty()) text += fmt::format("Authorization: Bearer {}\r\n", token);
  return text + "\r\n" + notice.text;
}

Result<std::optional<int>> read_status(std::string_view bytes) {
  for (;;) {
    const auto end = bytes.find('\n');
    if (end == bytes.npos) {
      if (bytes.size() > kMaxStatusLine) return fail(Errc::TooLarge, "the reply is not HTTP");
      return std::optional<int>();
    }
    std::string_view line = bytes.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto status = line.size() > kMaxStatusLine ? std::nullopt : status_of(line);
    if (!status) return fail(Errc::Malformed, "the reply is not HTTP");
    if (*status >= 200) return status;
    const auto next = bytes.find("\r\n\r\n", end - 1);
    if (next == bytes.npos) {
      if (bytes.size() > kMaxReplyHead) return fail(Errc::TooLarge, "the reply has a long header");
      return std::optional<int>();
    }
    bytes.remove_prefix(next + 4);
  }
}

bool is_worth_a_retry_after(int status) {
  return status >= 500 || status == 408 || status == 425 || status == 429;
}

}  // namespace score::head

#include "monitor/model/settings.hpp"

#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <fcntl.h>
#include <sys/stat.h>

namespace score::monitor {

namespace {

constexpr std::size_t kMaxTokenFile = 1'024;
constexpr std::size_t kLeastToken = 16, kMostToken = 256;

bool is_address(const std::string& host) {
  in6_addr buffer{};
  return inet_pton(AF_INET, host.c_str(), &buffer) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &buffer) == 1;
}

void read_listen(ConfigSection& section, std::string_view key, std::optional<ListenAddress>& out) {
  if (!section.has(key)) return;
  std::string text;
  section.read(key, text);
  if (text == "none") {
    out.reset();
    return;
  }
  const auto address = parse_listen(text);
  if (address) {
    out = *address;
  } else {
    section.refuse(key, "must be \"ADDRESS:PORT\" or \"none\"");
  }
}

bool is_local(const ListenAddress& address) {
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24U == 127;
  return inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

void check_reach(ConfigSection& section, std::string_view key,
                 const std::optional<ListenAddress>& address, const MonitorSettings& settings) {
  if (!address || is_local(*address)) return;
  if (!settings.certificate.empty() && !settings.token_file.empty()) return;
  section.refuse(key, "not a loopback address: that needs tls_certificate, tls_key and token_file");
}

std::string lower(std::string_view text) {
  std::string made(text);
  std::transform(made.begin(), made.end(), made.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return made;
}

void read_path(ConfigSection& section, std::string_view key, std::string& path) {
  section.read(key, path);
  if (section.has(key) && !path.starts_with('/')) section.refuse(key, "must be an absolute path");
}

void read_proxy(ConfigSection& section, MonitorSettings& settings) {
  std::string url;
  section.read("public_url", url);
  if (section.has("public_url")) {
    const auto origin = parse_public_url(url);
    if (origin) {
      settings.public_url = *origin;
    } else {
      section.refuse("public_url", "must be \"https://NAME[:PORT]/\"");
    }
  }
  read_path(section, "proxy_socket", settings.proxy_socket);
  section.read("proxy_user", settings.proxy_user);
  if (settings.proxy_socket.empty() != settings.proxy_user.empty()) {
    section.refuse("proxy_socket", "proxy_socket and proxy_user go together");
  } else if (!settings.proxy_socket.empty() && settings.public_url.empty()) {
    section.refuse("proxy_socket", "needs public_url, the proxy's own address");
  }
}

}  // namespace

Result<std::string> parse_public_url(std::string_view text) {
  const std::string url = lower(text.ends_with('/') ? text.substr(0, text.size() - 1) : text);
  const auto start = url.find("://");
  const std::string scheme = url.substr(0, std::min(start, url.size()));
  if (scheme != "https" && scheme != "http") return fail(Errc::Malformed, "no http or https");
  const std::string_view authority = std::string_view(url).substr(start + 3);
  const bool is_plain = std::all_of(authority.begin(), authority.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
  });
  if (authority.empty() || !is_plain) return fail(Errc::Malformed, "no name");
  return url;
}

Result<ListenAddress> parse_listen(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return fail(Errc::Malformed, "no port");
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  ListenAddress address{std::string(host), port.value_or(0)};
  if (!port || !is_address(address.host)) return fail(Errc::Malformed, "no address");
  return address;
}

void read_settings(ConfigSection& section, MonitorSettings& settings) {
  read_listen(section, "listen", settings.listen);
  read_listen(section, "node_listen", settings.node_listen);
  section.read("names", settings.names);
  for (std::string& name : settings.names) name = lower(name);
  read_proxy(section, settings);
  section.read("api", settings.has_api);
  read_path(section, "api_socket", settings.api_socket);
  section.read("private", settings.is_private);
  if (section.has("web_dir")) read_path(section, "web_dir", settings.web_dir);
  read_path(section, "tls_certificate", settings.certificate);
  read_path(section, "tls_key", settings.key);
  read_path(section, "token_file", settings.token_file);
  if (settings.certificate.empty() != settings.key.empty()) {
    section.refuse("tls_certificate", "tls_certificate and tls_key go together");
  }
  check_reach(section, "listen", settings.listen, settings);
  check_reach(section, "node_listen", settings.node_listen, settings);
}

std::string page_directory(const MonitorSettings& settings) {
  if (settings.web_dir != "auto") return settings.web_dir;
  const auto programs = own_directory();
  return programs.empty() ? "" : (programs.parent_path() / "share/scored/web").string();
}

Result<std::string> load_token(const std::string& path) {
  auto file = open_file(path, O_RDONLY | O_NOFOLLOW);
  if (!file) return file.error();

  struct stat info {};

  if (fstat(file->get(), &info) != 0) return fail(errno_code(errno), "{}", path);
  if ((info.st_mode & 077) != 0) {
    return fail(Errc::Denied, "{} is open to others: chmod 600", path);
  }
  const auto text = read_all(file->get(), kMaxTokenFile);
  if (!text) return text.error();
  const std::string token(trim(text->substr(0, text->find('\n'))));
  const bool is_plain =
      std::all_of(token.begin(), token.end(), [](unsigned char c) { return c > ' ' && c < 0x7F; });
  if (token.size() < kLeastToken || token.size() > kMostToken || !is_plain) {
    return fail(Errc::Malformed, "{}: the token must be {} to {} printable characters", path,
                kLeastToken, kMostToken);
  }
  return token;
}

}  // namespace score::monitor

#include "scored/head/clients/web_place.hpp"

#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "scored/head/config/users.hpp"

#include <optional>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kMaxPortText = 16;

}  // namespace

Result<monitor::HttpOptions> http_options(const monitor::MonitorSettings& settings) {
  monitor::HttpOptions options;
  options.host = settings.listen->host;
  options.names = settings.names;
  options.public_url = settings.public_url;
  options.has_api = settings.has_api;
  options.api_socket = settings.api_socket;
  if (!settings.proxy_socket.empty()) {
    const auto user = find_user(settings.proxy_user);
    if (!user) {
      return fail(Errc::NotFound, "monitor: proxy_user: no account {}", settings.proxy_user);
    }
    options.proxy = monitor::ProxySocket{settings.proxy_socket, *user};
  }
  options.certificate = settings.certificate;
  options.key = settings.key;
  if (!settings.token_file.empty()) {
    auto token = monitor::load_token(settings.token_file);
    if (!token) return token.error().with_context("monitor");
    options.token = *std::move(token);
  }
  return options;
}

Status open_where_it_was(monitor::HttpServer& server, const HeadConfig& config) {
  const std::uint16_t wanted = config.monitor.listen->port;
  if (wanted != 0) return server.open(wanted);
  const std::string path = config.state_dir + "/dashboard.port";
  std::optional<std::uint16_t> last;
  if (const auto text = read_file(path, kMaxPortText)) {
    if (const auto port = parse_number<std::uint16_t>(trim(*text))) last = *port;
  }
  Status opened = fail(Errc::NotFound, "no port");
  if (last) opened = server.open(*last);
  if (!opened) opened = server.open(0);
  if (!opened) return opened;
  const auto noted = replace_file(path, fmt::format("{}\n", server.port()), 0600);
  if (!noted) log_warning("Cannot store the dashboard's port", kv("err", noted.error()));
  return {};
}

}  // namespace score::head

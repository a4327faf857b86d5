#include "scored/head/process/follower_page.hpp"

#include "base/os/log.hpp"
#include "monitor/metrics/exporter.hpp"
#include "proto/transport/tls_connection.hpp"
#include "scored/head/clients/web_place.hpp"
#include "scored/head/config/version.hpp"

#include <utility>

namespace score::head {
namespace {

// Returns "host" of "host:port", "[::1]:port" or "http://host:port".
std::string host_of(std::string_view text) {
  if (const auto scheme = text.find("://"); scheme != text.npos) text.remove_prefix(scheme + 3);
  const auto colon = text.rfind(':');
  const bool has_port = colon != text.npos && !text.ends_with(']');
  if (has_port) text = text.substr(0, colon);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return std::string(text);
}

bool is_this_host(const std::string& host) {
  return host == "localhost" || monitor::is_loopback(host);
}

}  // namespace

monitor::Elsewhere elsewhere_of(const KnownLeader& leader, const std::string& own_url) {
  if (!leader.is_known) {
    return {"", "no head of the cluster is in charge at the moment; try again"};
  }
  const std::string text = fmt::format("the head at {} is in charge", leader.name);
  if (leader.url.empty()) return {"", text + "; it serves no dashboard"};
  const bool is_local_there = is_this_host(host_of(leader.url));
  if (is_local_there && !is_this_host(host_of(leader.name))) {
    return {"", fmt::format("{}; on its host the dashboard is {}/", text, leader.url)};
  }
  if (leader.url + "/" == own_url) return {"", text};
  return {leader.url, text};
}

FollowerPage::FollowerPage(const Parts& parts)
    : parts_(parts), logins_([] { return std::string(); }) {}

void FollowerPage::start() {
  if (!parts_.config.monitor.listen) return;
  if (const auto opened = open(); !opened) {
    server_.reset();
    log_warning("Cannot open the web server of the follower", kv("err", opened.error()));
    return;
  }
  server_->start();
}

Status FollowerPage::open() {
  auto options = http_options(parts_.config.monitor);
  if (!options) return options.error();
  monitor::HttpServer::Parts parts{parts_.io, parts_.clock, parts_.tasks, logins_, *this, nullptr};
  parts.elsewhere = [this] { return elsewhere(); };
  options->api_socket.clear();  // the head in charge serves programs
  server_.emplace(std::move(parts), *std::move(options), monitor::PageFiles());
  return open_where_it_was(*server_, parts_.config);
}

void FollowerPage::close() {
  if (server_) server_->close();
}

monitor::Elsewhere FollowerPage::elsewhere() const {
  KnownLeader leader;
  leader.is_known = parts_.election.is_other_in_charge();
  leader.name = format_endpoint(parts_.election.other_endpoint());
  leader.url = parts_.election.other_dashboard();
  return elsewhere_of(leader, url());
}

asio::awaitable<std::string> FollowerPage::metrics() {
  monitor::Exporter out;
  out.gauge("scored_build_info", "1; the labels say what runs.")
      .value(1, {{"version", std::string(kVersion)}, {"cluster", parts_.config.cluster}});
  out.gauge("scored_head_in_charge", "1: this head is in charge; 0: it follows the other one.")
      .value(0);
  monitor::export_process(out);
  co_return out.text();
}

}  // namespace score::head

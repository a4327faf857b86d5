#include "scout/start/host_cluster.hpp"

#include "base/text.hpp"
#include "base/text/json_writer.hpp"
#include "base/text/plain.hpp"
#include "scout/session/command.hpp"
#include "scout/session/head_link.hpp"
#include "scout/start/plan/remedy.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr Duration kBeat = std::chrono::seconds{1};
constexpr Duration kLook =
    std::chrono::milliseconds{20};  // between two requests to the head while it boots
constexpr Duration kFarewell =
    std::chrono::seconds{10};        // time for host agents to remove everything
constexpr std::size_t kAtOnce = 32;  // hosts that are being connected

// Hosts may reach the head over IPv4 and, if this host has it, over IPv6.
std::string all_interfaces() {
  const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  const bool has_ipv6 =
      socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
  return has_ipv6 ? "[::]" : "0.0.0.0";
}

std::string hexadecimal(const proto::Key& key) {
  std::string text;
  for (const auto byte : key.bytes()) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

HostCluster::HostCluster(StartOptions options, std::string programs)
    : OwnCluster(std::move(programs)), options_(std::move(options)), key_(proto::random_key()) {}

Status HostCluster::boot(const std::string& directory) {
  layout_.directory = directory;
  auto script = bootstrap_script({.programs = layout_.programs,
                                  .version = SCORE_VERSION,
                                  .push = options_.push,
                                  .directory = options_.directory});
  if (!script) return script.error();
  script_ = std::move(*script);
  ready_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!ready_) return fail(errno_code(errno), "epoll_create1");
  const auto hosts = options_.hosts.size();
  members_.resize(hosts);
  boot_tracker_.emplace(
      BootTracker::Bounds{.hosts = hosts,
                          .least = options_.min_hosts != 0 ? options_.min_hosts : hosts,
                          .at_once = kAtOnce,
                          .limit = options_.limit},
      monotonic_now());
  auto status = start_head();
  if (status && options_.push == Push::Always) {
    status = bundle_.start(layout_.programs, layout_.directory);
  }
  if (status) status = start_links();
  return status;
}

Status HostCluster::start_head() {
  for (const auto* name : {"head", "log"}) {
    if (auto made = make_directory(layout_.state_of(name)); !made) return made;
  }
  if (auto stored = proto::store_key(layout_.key(), key_); !stored) return stored;
  for (const auto& host : options_.hosts) options_.head.nodes.push_back(host.node);
  options_.head.listen = all_interfaces();
  const auto text = head_config(layout_, options_.head);
  if (auto written = replace_file(layout_.config_of("head"), text, 0600); !written) return written;
  daemons_.emplace(layout_, DaemonSetup{});
  return daemons_->start_head();
}

// The head writes the port that it listens on to a file, which is read here.
Status HostCluster::find_port() {
  if (layout_.head_port != 0) return {};
  const auto text = read_file(layout_.state_of("head") + "/head.port", 64);
  const auto port = text ? parse_number<std::uint16_t>(trim(*text)) : Result<std::uint16_t>(0);
  if (!port || *port == 0) return {};
  layout_.head_port = *port;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].wants_orders) send_orders(i);
  }
  return {};
}

Status HostCluster::start_links() {
  for (const auto index : boot_tracker_->start_now()) {
    if (auto started = start_link(index); !started) return started;
  }
  return {};
}

Status HostCluster::start_link(std::size_t index) {
  const auto& host = options_.hosts[index];
  const LinkPlan plan{
      .via = options_.via, .target = host.target, .index = index, .ssh = options_.ssh};
  auto link =
      Link::start(link_words(plan, script_), layout_.log_of("link-" + std::to_string(index)));
  if (!link) return link.error();
  auto& member = members_[index];
  member.link = std::move(*link);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = index}};
  if (::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, member.link->output_fd(), &event) != 0) {
    return fail(errno_code(errno), "epoll_ctl");
  }
  return {};
}

// Watches the input while bytes wait for room in it. The output is always watched.
void HostCluster::watch(Member& member) {
  const bool wants = member.link->wants_write();
  if (wants == member.watches_input || member.link->input_fd() < 0) return;
  const auto index = static_cast<std::size_t>(&member - members_.data());
  epoll_event event{.events = EPOLLOUT, .data = {.u64 = index}};
  const int operation = wants ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
  if (::epoll_ctl(ready_.get(), operation, member.link->input_fd(), &event) == 0) {
    member.watches_input = wants;
  }
}

Status HostCluster::serve() {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(ready_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(events[static_cast<std::size_t>(i)].data.u64);
    if (!members_[index].link) continue;
    members_[index].link->flush();
    watch(members_[index]);
    read_link(index);
  }
  if (auto found = find_port(); !found) return found;
  if (auto started = start_links(); !started) return started;
  send_beats();
  if (head_ended_ && monotonic_now() >= head_restart_) {
    head_ended_ = false;
    if (auto started = daemons_->restart("head"); !started) return started;
  }
  if (access(layout_.key().c_str(), F_OK) != 0) {
    return fail(Errc::Closed, "the cluster's directory was removed");
  }
  if (is_up_ && boot_tracker_->taking_part() == 0) return fail(Errc::Closed, "no host is left");
  return {};
}

void HostCluster::read_link(std::size_t index) {
  auto& link = members_[index].link;
  while (link) {
    const auto line = link->next_line();
    if (!line) break;
    if (const auto report = parse_report(*line)) on_report(index, *report);
  }
}

void HostCluster::on_report(std::size_t index, const Report& report) {
  auto& member = members_[index];
  const auto& node = options_.hosts[index].node;
  switch (report.kind) {
    case Report::Kind::Push:
      member.wants_bundle = true;
      if (auto started = bundle_.start(layout_.programs, layout_.directory); !started) {
        member.error = words_of(started.error());
        member.link->close_input();
      }
      return send_waiting();
    case Report::Kind::Absent:
      member.error = fmt::format(
          "Scored {} is not installed there{}: install the packages, or use --push auto",
          SCORE_VERSION, report.text.empty() ? "" : fmt::format(" (found {})", report.text));
      return;
    case Report::Kind::Hello:
      boot_tracker_->on_hello(index);
      member.wants_orders = true;
      if (layout_.head_port != 0) send_orders(index);
      return;
    case Report::Kind::Ready:
      return boot_tracker_->on_ready(index);
    case Report::Kind::Note:
      return notes_.push_back(fmt::format("{}: {}", node, report.text));
    case Report::Kind::Error:
      member.error = report.text;
      return;
    case Report::Kind::Gone:
      member.is_gone = true;
      return;
  }
}

void HostCluster::send_waiting() {
  if (!bundle_.bytes()) return;
  for (auto& member : members_) {
    if (!std::exchange(member.wants_bundle, false) || !member.link) continue;
    member.link->send(std::to_string(bundle_.bytes()->size()) + "\n");
    member.link->send(bundle_.bytes());
    watch(member);
  }
}

void HostCluster::send_orders(std::size_t index) {
  auto& member = members_[index];
  const auto& host = options_.hosts[index];
  member.wants_orders = false;
  if (!member.link) return;
  member.link->send(encode(Orders{.node = host.node,
                                  .uid = geteuid(),
                                  .head_host = options_.head_address,
                                  .own_host = options_.own_address,
                                  .head_port = layout_.head_port,
                                  .key = hexadecimal(proto::derive_node_key(key_, host.node)),
                                  .cores = host.slots,
                                  .memory = options_.memory,
                                  .hooks = options_.head.hooks,
                                  .use_cgroups = options_.via == Via::Ssh}));
  watch(member);
}

// Beats go only to host agents, because the script reads its input as the programs.
void HostCluster::send_beats() {
  const auto now = monotonic_now();
  if (now < next_beat_) return;
  next_beat_ = now + kBeat;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    auto& member = members_[i];
    if (!member.link || !boot_tracker_->has_hello(i) || member.link->wants_write()) continue;
    member.link->send(std::string("beat\n"));
    watch(member);
  }
}

Status HostCluster::on_child(pid_t pid, int shell_code) {
  const auto packed = bundle_.on_child(pid, shell_code);
  if (!packed) return packed.error();
  if (*packed) send_waiting();
  if (daemons_ && daemons_->forget(pid)) {
    const auto why = with_remedy(daemons_->last_log_line("head"), "");
    if (!is_up_) return fail(Errc::Closed, "the head ended with {}: {}", shell_code, why);
    notes_.push_back(fmt::format("the head ended with {} and is restarted: {}", shell_code, why));
    head_ended_ = true;
    head_restart_ = monotonic_now() + kBeat;
    return {};
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].link && members_[i].link->pid() == pid) on_link_end(i, shell_code);
  }
  return {};
}

void HostCluster::on_link_end(std::size_t index, int shell_code) {
  read_link(index);
  auto& member = members_[index];
  const auto& host = options_.hosts[index];
  auto words = member.error;
  if (words.empty()) words = with_remedy(member.link->last_words(), host.target);
  if (words.empty()) words = fmt::format("the connection has ended with {}", shell_code);
  notes_.push_back(fmt::format("{}: {}", host.node, words));
  boot_tracker_->on_failed(index);
  member.link.reset();
}

std::size_t HostCluster::nodes_up() {
  if (access(layout_.socket().c_str(), F_OK) != 0) return 0;
  auto head = HeadLink::connect(layout_.socket());
  if (!head) return 0;
  const auto info = head->ask<wire::Info>(wire::GetInfo(), std::chrono::seconds{5});
  return info ? info->nodes_up() : 0;
}

Result<bool> HostCluster::is_up() {
  const auto now = monotonic_now();
  if (now < next_look_) return false;
  next_look_ = now + kLook;
  if (!boot_tracker_->is_settled(now)) return false;
  const auto decision = boot_tracker_->decide(nodes_up(), now);
  if (decision == BootTracker::Decision::Wait) return false;
  if (now >= boot_tracker_->deadline()) name_silent_nodes();
  if (decision == BootTracker::Decision::TooFew) return too_few();
  is_up_ = true;
  return true;
}

// Reports hosts that were connected but whose daemon the head does not hear, and those never
// connected.
void HostCluster::name_silent_nodes() {
  auto head = HeadLink::connect(layout_.socket());
  if (!head) return;
  const auto list = head->ask<wire::NodeList>(wire::ListNodes(), std::chrono::seconds{5});
  if (!list) return;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto& node = options_.hosts[i].node;
    const auto is_here = [&](const auto& status) {
      return status.name() == node && status.memory_bytes() > 0;
    };
    if (boot_tracker_->has_failed(i) || std::ranges::any_of(list->nodes(), is_here)) continue;
    notes_.push_back(fmt::format(
        "{}: not up after {}; its node must reach port {} of this host: check the firewall, or use "
        "--head-address",
        node, format_duration(options_.limit), layout_.head_port));
    if (members_[i].link) members_[i].link->close_input();
    boot_tracker_->on_failed(i);
  }
}

Error HostCluster::too_few() const {
  const auto hosts = options_.hosts.size();
  const auto left = boot_tracker_->taking_part();
  const auto text = fmt::format("{} of {} can be used", left, counted(hosts, "host"));
  if (left == 0) return Error(Errc::WrongState, text);
  return Error(Errc::WrongState,
               fmt::format("{}; --min-hosts {} starts the cluster without the rest", text, left));
}

std::string HostCluster::describe() const {
  JsonWriter json;
  json.begin_object().field("schema", "scored.start/1").field("directory", layout_.directory);
  json.field("socket", layout_.socket()).field("port", std::uint64_t{layout_.head_port});
  json.field("supervisor_pid", getpid()).field("head_pid", daemons_->pid_of("head"));
  json.list("stop",
            std::vector<std::string>{layout_.programs + "/score", "stop", layout_.directory});
  json.key("hosts").begin_array();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    json.begin_object().field("node", options_.hosts[i].node);
    json.field("target", options_.hosts[i].target);
    json.field("link_pid", members_[i].link ? members_[i].link->pid() : -1).end_object();
  }
  return json.end_array().end_object().text() + "\n";
}

std::vector<std::string> HostCluster::take_notes() {
  return std::exchange(notes_, {});
}

// A host agent ends when its input ends, so this closes the inputs. A second call finds no links.
std::vector<std::string> HostCluster::tear_down() {
  for (auto& member : members_) {
    if (member.link) member.link->close_input();
  }
  const auto deadline = monotonic_now() + kFarewell;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    auto& member = members_[i];
    while (member.link && !member.is_gone && monotonic_now() < deadline) {
      read_link(i);
      if (member.link->output_fd() < 0) break;
      if (!member.is_gone) ::poll(nullptr, 0, kBootTick_ms);
    }
    if (member.link && !member.is_gone && monotonic_now() >= deadline) {
      notes_.push_back(fmt::format("{}: does not answer; it removes everything within {}",
                                   options_.hosts[i].node,
                                   format_duration(std::chrono::seconds{30})));
    }
    member.link.reset();
  }
  return {};
}

}  // namespace score::scout

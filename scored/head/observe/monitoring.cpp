// Samples flow only while somebody watches: the nodes are told the period that the most eager
// viewer needs, and to stop two seconds after the last one left. Documents are made at multiples of
// 100 ms of the head's clock, one a group of viewers (monitor::Hub).
//
// A scrape of /metrics asks the nodes for their totals and waits a moment for them; what does not
// come in time is as it was.
#include "scored/head/observe/monitoring.hpp"

#include "base/async/timeout.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/json_writer.hpp"
#include "proto/convert/convert.hpp"
#include "proto/trace/trace_export.hpp"
#include "proto/trace/trace_json.hpp"
#include "scored/head/config/settings.hpp"
#include "scored/head/observe/metrics.hpp"
#include "scored/head/observe/sample_wire.hpp"
#include "scored/journal/event.hpp"

#include <algorithm>
#include <sys/random.h>
#include <utility>

namespace score::head {
namespace {

using monitor::ActionKind;

constexpr Duration kLinger = 2s;          // of sampling, for a page that is loaded again
constexpr Duration kTotalsWait = 300ms;   // of a scrape, for the nodes
constexpr Duration kLoadsWait = 3s;       // of a snapshot with loads, for the nodes
constexpr std::uint32_t kAskedTicks = 5;  // samples as often, that are not played out later
constexpr std::size_t kMaxPortText = 16;
constexpr Duration kLatePause = 10s;            // between two events of late switches
constexpr Duration kTraceMargin = 1s;           // around a moment
constexpr std::uint32_t kSlowestSampling = 10;  // ticks: loads are averages over a second at most

std::string random_text() {
  std::array<unsigned char, 32> bytes{};
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// The frame that a command would send for it: its row of the permission table holds here too.
proto::FrameType frame_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::SetQuantum:
      return proto::FrameType::SetQuantum;
    case ActionKind::SetSlots:
      return proto::FrameType::SetSlots;
    case ActionKind::Drain:
    case ActionKind::Resume:
      return proto::FrameType::DrainNodes;
    case ActionKind::Suspend:
    case ActionKind::Continue:
      return proto::FrameType::ControlJob;
    case ActionKind::Cancel:
    case ActionKind::Logout:
      break;
  }
  return proto::FrameType::CancelJob;
}

bool is_operator(proto::Role role) {
  return role == proto::Role::Operator || role == proto::Role::Root;
}

}  // namespace

Monitoring::Monitoring(asio::io_context& io, Clock& clock, TaskGroup& tasks, Head& head)
    : io_(io),
      clock_(clock),
      tasks_(tasks),
      head_(head),
      head_id_(random_text().substr(0, 16)),
      late_(kLatePause),
      logins_(&random_text),
      all_came_(io),
      wake_(io, 1) {
  all_came_.expires_at(asio::steady_timer::time_point::max());
  head_.observe(this);
}

Monitoring::~Monitoring() {
  head_.observe(nullptr);
}

Status Monitoring::open(const monitor::MonitorSettings& settings) {
  if (!settings.listen) return {};
  monitor::HttpOptions options;
  options.host = settings.listen->host;
  options.names = settings.names;
  options.public_url = settings.public_url;
  if (!settings.proxy_socket.empty()) {
    const auto user = find_user(settings.proxy_user);
    if (!user) {
      return fail(Errc::NotFound, "monitor: proxy_user: no account {}", settings.proxy_user);
    }
    options.proxy = monitor::ProxyDoor{settings.proxy_socket, *user};
  }
  options.certificate = settings.certificate;
  options.key = settings.key;
  if (!settings.token_file.empty()) {
    auto token = monitor::load_token(settings.token_file);
    if (!token) return token.error().with_context("monitor");
    options.token = *std::move(token);
  }
  auto pages = monitor::PageFiles::load(monitor::page_directory(settings));
  if (!pages) return pages.error().with_context("monitor");
  server_.emplace(monitor::HttpServer::Parts{io_, clock_, tasks_, logins_, *this, this},
                  std::move(options), *std::move(pages));
  if (auto opened = open_where_it_was(settings.listen->port); !opened) return opened;
  head_.set_dashboard_url(server_->url());
  return {};
}

// A page that is open finds the head again after a restart if its port is the same.
Status Monitoring::open_where_it_was(std::uint16_t wanted) {
  if (wanted != 0) return server_->open(wanted);
  const std::string path = head_.config().state_dir + "/dashboard.port";
  std::optional<std::uint16_t> last;
  if (const auto text = read_file(path, kMaxPortText)) {
    if (const auto port = parse_number<std::uint16_t>(trim(*text))) last = *port;
  }
  Status opened = fail(Errc::NotFound, "no port");
  if (last) opened = server_->open(*last);
  if (!opened) opened = server_->open(0);
  if (!opened) return opened;
  const auto noted = replace_file(path, fmt::format("{}\n", server_->port()), 0600);
  if (!noted) log_warning("cannot note the dashboard's port", kv("err", noted.error()));
  return {};
}

void Monitoring::start() {
  if (server_) server_->start();
  tasks_.spawn("make documents", make_documents());
  monitor::Event event;
  event.at = clock_.now();
  event.wall = wall_now();
  event.text = fmt::format("the head started, incarnation {}", head_.incarnation());
  happened(std::move(event));
}

void Monitoring::close() {
  if (server_) server_->close();
}

// ---- samples ------------------------------------------------------------------------------------

void Monitoring::send_wish(NodeId node, bool once) {
  wire::WatchNode wish;
  wish.set_period_ns(sampling_.count());
  wish.set_together_ns(together().count());
  wish.set_once(once);
  wish.set_peers(samples_peers_);
  head_.links().send(node, wish);
}

// Counts those that are away too: a delay that changed would show time running back.
Duration Monitoring::together() const {
  return monitor::together(head_.config().nodes.size());
}

Duration Monitoring::delay() const {
  return monitor::SampleQueue::delay(sampling_, together());
}

// Tells the nodes when the most eager viewer changed.
void Monitoring::wish_samples() {
  const std::uint32_t ticks = std::min(hub_.shortest_ticks(), kSlowestSampling);
  const TimePoint now = clock_.now();
  Duration wanted = monitor::kTick * ticks;
  if (ticks == 0 && sampling_ > Duration(0)) {
    if (!unwatched_since_) unwatched_since_ = now;
    if (now - *unwatched_since_ < kLinger) wanted = sampling_;
  } else {
    unwatched_since_.reset();
  }
  if (wanted == Duration(0) && sampling_ > Duration(0)) {
    meter_.interrupt_all(now);
    queue_.forget_all();
  }
  wish(wanted, hub_.wants(monitor::Part::Peers));
}

void Monitoring::wish(Duration period, bool peers) {
  if (period == sampling_ && peers == samples_peers_) return;
  sampling_ = period;
  samples_peers_ = peers;
  meter_.peers().set_nodes(static_cast<std::uint32_t>(head_.config().nodes.size()));
  if (!peers) meter_.peers().forget();
  for (const NodeId node : head_.links().connected()) send_wish(node, false);
}

void Monitoring::node_connected(NodeId node) {
  send_wish(node, true);  // its counters count from here on
}

void Monitoring::node_lost(NodeId node) {
  queue_.forget(node);
  meter_.interrupt(node, clock_.now());
  if (awaited_.erase(node) > 0 && awaited_.empty()) all_came_.cancel();
}

void Monitoring::node_sampled(NodeId node, const wire::NodeSample& message) {
  auto sample = queue_.spare();
  if (auto read = from_wire(message, *sample); !read) {
    static LogLimiter limiter;
    if (limiter.allow(clock_.now())) {
      log_warning("drop sample", kv("node", head_.links().name(node)), kv("err", read.error()));
    }
    return;
  }
  // The first one says who is there.
  const bool can_wait = !sample->totals_only && meter_.load(node) != nullptr;
  if (can_wait) return queue_.put(node, std::move(sample));
  feed(node, *sample);
  if (awaited_.erase(node) > 0 && awaited_.empty()) all_came_.cancel();
}

void Monitoring::play(TimePoint until) {
  queue_.take(until, [this](NodeId node, const auto& sample) { feed(node, sample); });
}

void Monitoring::feed(NodeId node, const monitor::NodeSample& sample) {
  for (const monitor::GangSample& gang : sample.gangs) {
    if (!samples_peers_ || gang.frames_to.empty()) continue;
    meter_.peers().feed(node, sample.taken, gang, head_.nodes_of(gang.attempt));
  }
  for (const monitor::LateSwitch& late : meter_.feed(node, sample)) late_.add(late);
  if (const auto report = late_.take(clock_.now())) report_late(*report);
}

void Monitoring::report_late(const monitor::LateReports<monitor::LateSwitch>::Report& report) {
  monitor::Event event;
  event.at = report.worst.due;
  event.wall = wall_now();
  event.kind = monitor::EventKind::Late;
  event.node = report.worst.node;
  const double ms = std::chrono::duration<double, std::milli>(report.worst.late).count();
  const std::string& node = head_.links().name(report.worst.node);
  event.text =
      report.count == 1
          ? fmt::format("switch {:.1f} ms late on {} (trace {})", ms, node, report.worst.id)
          : fmt::format("{} switches late, the worst {:.1f} ms on {} (trace {})", report.count, ms,
                        node, report.worst.id);
  happened(std::move(event));
}

void Monitoring::task_ended(NodeId node, JobId job) {
  if (sampling_ > Duration(0)) meter_.task_ended(node, job, clock_.now());
}

void Monitoring::happened(monitor::Event event) {
  events_.add(std::move(event));
}

// ---- documents ----------------------------------------------------------------------------------

monitor::ClusterView Monitoring::view() {
  monitor::ClusterView made = head_.show();
  made.head = head_id_;
  if (sampling_ > Duration(0)) made.sample_period = sampling_;
  made.sample_delay = delay();
  made.viewers = hub_.viewer_count();
  made.events = &events_.events();
  return made;
}

monitor::Frame Monitoring::snapshot(const monitor::Filter& filter, const monitor::Sight& sight) {
  monitor::DocumentOptions options;
  options.filter = filter;
  options.sight = sight;
  const auto now = view();
  return std::make_shared<const std::string>(write_document(now, meter_, options));
}

// Two samples of each node are needed, and nodes send none while nobody watches.
Status Monitoring::measured_snapshot(const monitor::Filter& filter, const monitor::Sight& sight,
                                     std::function<void(monitor::Frame)> give) {
  if (!monitor::is_measured(filter) || has_all_loads(view(), meter_)) {
    give(snapshot(filter, sight));
    return {};
  }
  monitor::ViewerOptions options;
  options.ticks = kAskedTicks;
  options.filter = filter;
  const auto viewer = join(options, sight, [](const monitor::Frame&) { return true; });
  if (!viewer) return viewer.error();
  asked_.push_back({*viewer, filter, sight, clock_.now() + kLoadsWait, std::move(give)});
  return {};
}

void Monitoring::answer_asked(const monitor::ClusterView& view) {
  if (asked_.empty()) return;
  const bool has_all = has_all_loads(view, meter_);
  std::erase_if(asked_, [&](const Asked& asked) {
    if (!has_all && view.now < asked.give_up) return false;
    hub_.remove(asked.viewer);
    asked.give(snapshot(asked.filter, asked.sight));
    return true;
  });
}

asio::awaitable<void> Monitoring::make_documents() {
  using namespace asio::experimental::awaitable_operators;
  for (;;) {
    wish_samples();
    if (hub_.viewer_count() == 0 && sampling_ == Duration(0)) {
      co_await wake_.async_receive(asio::use_awaitable);
      continue;
    }
    const auto number = clock_.now().time_since_epoch() / monitor::kTick + 1;
    co_await clock_.sleep_until(TimePoint(monitor::kTick * number));
    play(clock_.now() - delay());
    if (hub_.shortest_ticks() == 0) continue;
    const monitor::ClusterView now = view();
    hub_.tick(static_cast<std::uint64_t>(number),
              [&](const monitor::ViewerOptions& viewer, const monitor::Sight& sight,
                  std::uint64_t sequence) {
                monitor::DocumentOptions options;
                options.sequence = sequence;
                options.filter = viewer.filter;
                options.sight = sight;
                options.slices = std::max<Duration>(viewer.period() + 2 * monitor::kTick, 500ms);
                options.window = std::max<Duration>(viewer.period(), 1s);
                return std::make_shared<const std::string>(write_document(now, meter_, options));
              });
    answer_asked(now);
  }
}

Result<monitor::ViewerId> Monitoring::join(const monitor::ViewerOptions& options,
                                           const monitor::Sight& sight, monitor::Deliver deliver) {
  auto joined = hub_.add(options, sight, std::move(deliver));
  wake_.try_send(boost::system::error_code());
  return joined;
}

Status Monitoring::change(monitor::ViewerId viewer, const monitor::ViewerOptions& options) {
  return hub_.change(viewer, options);
}

void Monitoring::pause(monitor::ViewerId viewer, bool paused) {
  hub_.pause(viewer, paused);
  wake_.try_send(boost::system::error_code());
}

void Monitoring::leave(monitor::ViewerId viewer) {
  hub_.remove(viewer);
}

// ---- people -------------------------------------------------------------------------------------

Result<std::string> Monitoring::web_login(const Peer& peer) {
  if (!server_) return fail(Errc::Unsupported, "the head serves no dashboard ([monitor] listen)");
  const auto token = logins_.offer({peer.user, peer.name}, clock_.now());
  if (!token) return token.error();
  return server_->url() + "login?token=" + *token;
}

monitor::Sight Monitoring::sight_of(const std::optional<monitor::WebUser>& who) {
  monitor::Sight sight;
  if (!who) return sight;
  sight.user = who->user;
  sight.is_operator = is_operator(head_.users().role(who->user, clock_.now()));
  return sight;
}

std::optional<monitor::WebUser> Monitoring::user_named(const std::string& name) {
  const auto user = head_.users().named(name, clock_.now());
  if (!user) return std::nullopt;
  return monitor::WebUser{*user, head_.users().name(*user, clock_.now())};
}

std::string Monitoring::session_document(const std::optional<monitor::WebSession>& session) {
  std::optional<monitor::WebUser> who;
  if (session) who = session->who;
  const monitor::Sight sight = sight_of(who);
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().field("schema", "scored.session/1");
  json.field("role", !session ? "viewer" : sight.is_operator ? "operator" : "user");
  json.key("user");
  session ? json.value(session->who.name) : json.null();
  json.key("csrf");
  session ? json.value(session->csrf) : json.null();
  json.field("cluster", head_.config().cluster).field("version", kVersion);
  json.list("rates", std::vector<int>{1, 2, 5, 10});
  json.field("private", head_.config().monitor.is_private).key("can").begin_array();
  if (sight.is_operator) {
    for (const char* name : {"quantum", "slots", "drain", "resume"}) json.value(name);
  }
  if (session) {
    for (const char* name : {"suspend", "continue", "cancel", "logout"}) json.value(name);
  }
  json.end_array().end_object();
  return json.take();
}

// ---- actions ------------------------------------------------------------------------------------

bool Monitoring::may(const Peer& peer, const monitor::Action& action) {
  proto::Role role = peer.role;
  if (action.job != JobId()) {
    const auto owner = head_.owner(action.job);
    if (role == proto::Role::OtherUser && owner && *owner == peer.user) role = proto::Role::Owner;
  }
  return proto::may_send(role, frame_of(action.kind));
}

Result<std::string> Monitoring::act(const monitor::WebUser& who, const monitor::Action& action) {
  Peer peer;
  peer.user = who.user;
  peer.role = head_.users().role(who.user, clock_.now());
  peer.name = who.name;
  peer.via = "web";
  if (!may(peer, action)) {
    report(Event::CommandRefused, kv("user", peer.name),
           kv("action", monitor::name_of(action.kind)), kv("object", monitor::object_of(action)),
           kv("via", peer.via));
    return fail(Errc::Denied, "{} may not do this", peer.name);
  }
  if (action.job != JobId()) {
    if (auto owner = head_.owner(action.job); !owner) return owner.error();
  }
  return carry_out(peer, action);
}

Result<std::string> Monitoring::carry_out(const Peer& peer, const monitor::Action& action) {
  Status done;
  std::string text = "done";
  switch (action.kind) {
    case ActionKind::SetQuantum:
      done = head_.set_quantum(peer, action.quantum);
      text = "quantum " + format_duration(action.quantum) + " from the next boundary on";
      break;
    case ActionKind::SetSlots:
      done = head_.set_slots(peer, action.slots);
      text = fmt::format("slots {}", action.slots);
      break;
    case ActionKind::Drain:
    case ActionKind::Resume: {
      wire::DrainNodes message;
      message.add_nodes(action.nodes);
      message.set_reason(action.reason);
      message.set_resume(action.kind == ActionKind::Resume);
      done = head_.drain(peer, message);
      break;
    }
    case ActionKind::Suspend:
    case ActionKind::Continue: {
      wire::ControlJob message;
      message.set_job(action.job.value());
      message.set_what(action.kind == ActionKind::Suspend ? wire::ControlJob::SUSPEND
                                                          : wire::ControlJob::RESUME);
      done = head_.control(peer, message);
      break;
    }
    case ActionKind::Cancel: {
      wire::CancelJob message;
      message.set_job(action.job.value());
      message.set_grace_ns(action.grace ? action.grace->count() : -1);
      done = head_.cancel(peer, message);
      break;
    }
    case ActionKind::Logout:
      break;
  }
  if (!done) return done.error();
  return text;
}

// ---- traces and metrics -------------------------------------------------------------------------

namespace {

// Records are of the nodes' own clocks.
void cut_after(wire::Trace& trace, TimePoint until) {
  for (auto& node : *trace.mutable_nodes()) {
    auto& switches = *node.mutable_switches();
    const auto last = std::remove_if(switches.begin(), switches.end(), [&](const auto& record) {
      return TimePoint(Duration(record.due_ns() + node.clock_offset_ns())) > until;
    });
    switches.erase(last, switches.end());
  }
}

std::string text_of(const wire::Trace& trace, monitor::Site::TraceFormat format) {
  using Format = monitor::Site::TraceFormat;
  if (format == Format::Perfetto) return proto::trace_perfetto(trace);
  if (format == Format::Chrome) return proto::trace_chrome(trace);
  return proto::trace_json(trace, JsonWriter::Layout::Line);
}

}  // namespace

asio::awaitable<Result<std::string>> Monitoring::trace(TraceRequest wish) {
  const TimePoint now = clock_.now();
  if (wish.late) {
    const auto late = meter_.switches().late(*wish.late);
    if (!late) co_return fail(Errc::NotFound, "no late switch {} is remembered", *wish.late);
    wish.at = late->due;
  }
  if (wish.at) wish.since = std::max<Duration>(now - *wish.at, Duration(0)) + kTraceMargin;
  using Channel = asio::experimental::channel<void(boost::system::error_code)>;
  const auto came = std::make_shared<Channel>(io_, 1);
  const auto found = std::make_shared<wire::Trace>();
  // Nodes count back from their own clock when they are asked.
  const auto asked = head_.trace(wish.since, [came, found](wire::Trace trace) {
    *found = std::move(trace);
    came->try_send(boost::system::error_code());
  });
  if (!asked) co_return asked.error();
  co_await came->async_receive(asio::use_awaitable);
  if (wish.at) cut_after(*found, *wish.at + kTraceMargin);
  co_return text_of(*found, wish.format);
}

asio::awaitable<void> Monitoring::gather_totals() {
  if (!std::exchange(is_gathering_, true)) {
    for (const NodeId node : head_.links().connected()) {
      awaited_.insert(node);
      send_wish(node, true);
    }
  }
  using namespace asio::experimental::awaitable_operators;
  const TimePoint give_up = clock_.now() + kTotalsWait;
  if (!awaited_.empty()) {
    co_await (clock_.sleep_until(give_up) || all_came_.async_wait(kNoThrow));
  }
  awaited_.clear();
  is_gathering_ = false;
}

asio::awaitable<std::string> Monitoring::metrics() {
  co_await gather_totals();
  const monitor::HttpServer::Counts none;
  co_return metrics_text(head_, meter_, hub_, server_ ? server_->counts() : none);
}

}  // namespace score::head

// Nodes send samples only while viewers watch, at the shortest period that a viewer needs. They
// stop two seconds after the last viewer left. Documents are made at multiples of 100 ms of the
// head's clock, one per group of viewers (monitor::Hub).
//
// A scrape of /metrics asks the nodes for their totals and waits briefly for them; totals that are
// late keep their last values. So does the history, every ten seconds, if there is a web server.
#include "scored/head/clients/monitoring.hpp"

#include "base/async/timeout.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "base/text/json_writer.hpp"
#include "monitor/meters/stored_history.hpp"
#include "proto/trace/trace_export.hpp"
#include "proto/trace/trace_json.hpp"
#include "scored/head/clients/metrics.hpp"
#include "scored/head/clients/sample_wire.hpp"
#include "scored/head/clients/web_place.hpp"
#include "scored/head/config/version.hpp"

#include <algorithm>
#include <sys/random.h>
#include <utility>

namespace score::head {
namespace {

constexpr Duration kDirectoryWait = 2s;         // of a request, for the user directory
constexpr Duration kLinger = 2s;                // of sampling, for a page that is loaded again
constexpr Duration kTotalsWait = 300ms;         // of a scrape, for the nodes
constexpr int kStoredEvery = 60;                // points of history
constexpr Duration kLoadsWait = 3s;             // of a snapshot with loads, for the nodes
constexpr std::uint32_t kAskedTicks = 5;        // for a snapshot; such samples are not delayed
constexpr Duration kLatePause = 1min;           // between two events of late switches
constexpr Duration kTraceMargin = 1s;           // around a moment
constexpr std::uint32_t kSlowestSampling = 10;  // ticks: loads are averages over one second at most

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

bool is_operator(proto::Role role) {
  return role == proto::Role::Operator || role == proto::Role::Root;
}

}  // namespace

Monitoring::Monitoring(asio::io_context& io, Clock& clock, TaskGroup& tasks, const Parts& parts)
    : io_(io),
      clock_(clock),
      tasks_(tasks),
      parts_(parts),
      head_id_(random_text().substr(0, 16)),
      late_(kLatePause),
      logins_(&random_text),
      all_came_(io),
      wake_(io, 1) {
  all_came_.expires_at(asio::steady_timer::time_point::max());
}

Status Monitoring::open(const monitor::MonitorSettings& settings) {
  if (!settings.listen) return {};
  auto options = http_options(settings);
  if (!options) return options.error();
  auto pages = monitor::PageFiles::load(monitor::page_directory(settings));
  if (!pages) return pages.error().with_context("monitor");
  server_.emplace(monitor::HttpServer::Parts{io_,
                                             clock_,
                                             tasks_,
                                             logins_,
                                             *this,
                                             this,
                                             {},
                                             parts_.api,
                                             [this] { return parts_.head.lease.holds(); }},
                  *std::move(options), *std::move(pages));
  if (auto opened = open_where_it_was(*server_, parts_.head.config); !opened) return opened;
  parts_.overview.set_dashboard_url(server_->url());
  return {};
}

void Monitoring::start(Epoch incarnation) {
  if (server_) server_->start();
  tasks_.spawn("make documents", make_documents());
  if (server_) {
    restore_history();
    tasks_.spawn("keep history", keep_history());
  }
  parts_.head.feed.add(monitor::EventKind::Head,
                       fmt::format("the head started, incarnation {}", incarnation), {});
}

void Monitoring::close() {
  if (!server_) return;
  server_->close();
  store_history();
}

// ---- samples ------------------------------------------------------------------------------------

void Monitoring::request_samples(NodeId node, bool once) {
  wire::WatchNode request;
  request.set_period_ns(sampling_.count());
  request.set_together_ns(together().count());
  request.set_once(once);
  request.set_peers(samples_peers_);
  parts_.head.links.send(node, request);
}

// Disconnected nodes count too, because time would seem to run backwards if the delay changed.
Duration Monitoring::together() const {
  return monitor::together(parts_.head.config.nodes.size());
}

Duration Monitoring::delay() const {
  return monitor::SampleQueue::delay(sampling_, together());
}

// Changes the period of the samples when the shortest period that a viewer needs has changed.
void Monitoring::update_sampling() {
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
  set_sampling(wanted, hub_.wants(monitor::Part::Peers));
}

void Monitoring::set_sampling(Duration period, bool peers) {
  if (period == sampling_ && peers == samples_peers_) return;
  sampling_ = period;
  samples_peers_ = peers;
  meter_.peers().set_nodes(static_cast<std::uint32_t>(parts_.head.config.nodes.size()));
  if (!peers) meter_.peers().forget();
  for (const NodeId node : parts_.head.links.connected()) request_samples(node, false);
}

void Monitoring::node_connected(NodeId node) {
  request_samples(node, true);  // its counters start here
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
      log_warning("Dropped sample", kv("node", parts_.head.links.name(node)),
                  kv("err", read.error()));
    }
    return;
  }
  if (message.has_totals()) meter_.feed_volumes(node, sample->taken, volumes_of(message));
  // The first sample names the running tasks, so it does not wait.
  const bool can_wait = !sample->totals_only && meter_.load(node) != nullptr;
  if (can_wait) return queue_.put(node, std::move(sample));
  feed(node, *sample);
  if (!sample->totals) return;
  if (awaited_.erase(node) > 0 && awaited_.empty()) all_came_.cancel();
}

void Monitoring::play(TimePoint until) {
  queue_.take(until, [this](NodeId node, const auto& sample) { feed(node, sample); });
}

void Monitoring::feed(NodeId node, const monitor::NodeSample& sample) {
  for (const monitor::GangSample& gang : sample.gangs) {
    parts_.head.jobs.note_filled(gang.attempt, node, gang.filled);
    if (!samples_peers_ || gang.frames_to.empty()) continue;
    meter_.peers().feed(node, sample.taken, gang, parts_.head.jobs.nodes_of(gang.attempt));
  }
  late_.note_switches(static_cast<std::uint64_t>(
      std::ranges::count_if(sample.switches, &monitor::SwitchSample::is_switch)));
  for (const monitor::LateSwitch& late : meter_.feed(node, sample)) late_.add(late);
  if (const auto report = late_.take(clock_.now())) report_late(*report);
}

void Monitoring::report_late(const monitor::LateReports<monitor::LateSwitch>::Report& report) {
  EventFeed::About about;
  about.at = report.worst.due;
  about.node = report.worst.node;
  const monitor::LateSwitch& worst = report.worst;
  const std::string& node = parts_.head.links.name(worst.node);
  const auto late = fmt::format(
      "by {:.1f} ms, {:.0f} % of the slice, on {} (trace {})",
      std::chrono::duration<double, std::milli>(worst.late).count(),
      100.0 * static_cast<double>(worst.late.count()) / static_cast<double>(worst.slice.count()),
      node, worst.id);
  parts_.head.feed.add(monitor::EventKind::Late,
                       report.count == 1
                           ? fmt::format("a switch was late {}", late)
                           : fmt::format("{} of {} switches were late, the worst {}", report.count,
                                         std::max(report.count, report.switches), late),
                       std::move(about));
}

void Monitoring::task_ended(NodeId node, JobId job) {
  if (sampling_ > Duration(0)) meter_.task_ended(node, job, clock_.now());
}

// ---- documents ----------------------------------------------------------------------------------

monitor::ClusterView Monitoring::view() {
  monitor::ClusterView made = parts_.overview.view();
  made.head = head_id_;
  if (sampling_ > Duration(0)) made.sample_period = sampling_;
  made.sample_delay = delay();
  made.viewers = hub_.viewer_count();
  made.events = &parts_.head.feed.log().events();
  return made;
}

monitor::Frame Monitoring::snapshot(const monitor::Filter& filter, const monitor::Sight& sight) {
  monitor::DocumentOptions options;
  options.filter = filter;
  options.sight = sight;
  const auto now = view();
  return std::make_shared<const std::string>(write_document(now, meter_, options));
}

// Loads need two samples of each node, and nodes send none while no viewer watches.
Status Monitoring::measured_snapshot(const std::string& owner, const monitor::Filter& filter,
                                     const monitor::Sight& sight,
                                     std::function<void(monitor::Frame)> give) {
  if (!monitor::is_measured(filter) || has_all_loads(view(), meter_)) {
    give(snapshot(filter, sight));
    return {};
  }
  monitor::ViewerOptions options;
  options.ticks = kAskedTicks;
  options.filter = filter;
  const auto viewer = join(owner, options, sight, [](const monitor::Frame&) { return true; });
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
    update_sampling();
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

Result<monitor::ViewerId> Monitoring::join(const std::string& owner,
                                           const monitor::ViewerOptions& options,
                                           const monitor::Sight& sight, monitor::Deliver deliver) {
  auto joined = hub_.add(owner, options, sight, std::move(deliver));
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

// ---- users --------------------------------------------------------------------------------------

Result<std::string> Monitoring::web_login(const Peer& peer) {
  if (!server_) return fail(Errc::Unsupported, "the head serves no dashboard ([monitor] listen)");
  const auto token = logins_.offer({peer.user, peer.name}, clock_.now());
  if (!token) return token.error();
  return server_->url() + "login#" + *token;
}

monitor::Sight Monitoring::sight_of(const std::optional<monitor::WebUser>& who) {
  monitor::Sight sight;
  if (!who) return sight;
  sight.user = who->user;
  sight.is_operator = is_operator(parts_.head.users.role(who->user, clock_.now()));
  return sight;
}

asio::awaitable<std::optional<monitor::WebUser>> Monitoring::user_named(std::string name) {
  co_await parts_.head.users.known(name, clock_.now(), kDirectoryWait);
  const auto user = parts_.head.users.named(name, clock_.now());
  if (!user) co_return std::nullopt;
  co_await parts_.head.users.known(*user, clock_.now(), kDirectoryWait);
  co_return monitor::WebUser{*user, parts_.head.users.name(*user, clock_.now())};
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
  json.field("cluster", parts_.head.config.cluster).field("version", kVersion);
  json.list("rates", std::vector<int>{1, 2, 5, 10});
  json.field("private", parts_.head.config.monitor.is_private).key("can").begin_array();
  if (sight.is_operator) {
    for (const char* name : {"set", "drain", "resume"}) json.value(name);
  }
  if (session) {
    for (const char* name : {"suspend", "continue", "cancel", "logout"}) json.value(name);
  }
  json.end_array().end_object();
  return json.take();
}

// ---- actions ------------------------------------------------------------------------------------

asio::awaitable<Result<std::string>> Monitoring::act(monitor::WebUser who, monitor::Action action) {
  const auto command = from_action(action);
  if (!command) co_return fail(Errc::NotFound, "no such action");
  const Peer peer{who.user, parts_.head.users.role(who.user, clock_.now()), who.name, "web"};
  using Channel = asio::experimental::channel<void(boost::system::error_code)>;
  const auto done = std::make_shared<Channel>(io_, 1);
  const auto result = std::make_shared<Result<std::string>>(std::string());
  const auto take = [done, result](const Result<Logged<std::string>>& reply) {
    *result = reply ? Result<std::string>(reply->value) : reply.error();
    done->try_send(boost::system::error_code());
  };
  parts_.admin.execute(peer, *command, take);
  co_await done->async_receive(asio::use_awaitable);
  if (*result && (*result)->empty()) co_return std::string("done");
  co_return *result;
}

// ---- traces and metrics -------------------------------------------------------------------------

namespace {

// Records have the times of the nodes' own clocks.
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
    if (!late) co_return fail(Errc::NotFound, "late switch {} is not known any more", *wish.late);
    wish.at = late->due;
  }
  if (wish.at) wish.since = std::max<Duration>(now - *wish.at, Duration(0)) + kTraceMargin;
  using Channel = asio::experimental::channel<void(boost::system::error_code)>;
  const auto came = std::make_shared<Channel>(io_, 1);
  const auto found = std::make_shared<wire::Trace>();
  // Nodes count back from the time on their own clock at which they are asked.
  const auto asked = parts_.traces.gather("monitor", wish.since, [came, found](wire::Trace trace) {
    *found = std::move(trace);
    came->try_send(boost::system::error_code());
  });
  if (!asked) co_return asked.error();
  co_await came->async_receive(asio::use_awaitable);
  if (wish.at) cut_after(*found, *wish.at + kTraceMargin);
  co_return text_of(*found, wish.format);
}

asio::awaitable<void> Monitoring::gather_totals() {
  if (!std::exchange(is_in_rank_barrier_, true)) {
    for (const NodeId node : parts_.head.links.connected()) {
      awaited_.insert(node);
      request_samples(node, true);
    }
  }
  using namespace asio::experimental::awaitable_operators;
  const TimePoint give_up = clock_.now() + kTotalsWait;
  if (!awaited_.empty()) {
    co_await (clock_.sleep_until(give_up) || all_came_.async_wait(kNoThrow));
  }
  awaited_.clear();
  is_in_rank_barrier_ = false;
}

asio::awaitable<void> Monitoring::keep_history() {
  for (;;) {
    const auto number = clock_.now().time_since_epoch() / monitor::LoadHistory::kPeriod + 1;
    co_await clock_.sleep_until(TimePoint(monitor::LoadHistory::kPeriod * number));
    co_await gather_totals();
    const monitor::ClusterView now = parts_.overview.view();
    const monitor::NodeTotals& sum = meter_.sum();
    monitor::HistoryTotals totals;
    totals.at = now.wall;
    totals.user = sum.user;
    totals.system = sum.system;
    totals.filled = sum.filled;
    totals.busy = sum.busy;
    totals.overhead = sum.overhead.total();
    totals.switches = sum.switches;
    totals.late = sum.late;
    totals.jobs = now.jobs_active;
    totals.nodes = now.nodes_up;
    for (const auto& node : now.nodes) {
      if (node.state == "up") totals.cores += node.cores;
    }
    history_.add(totals);
    if (number % kStoredEvery == 0) store_history();
  }
}

void Monitoring::restore_history() {
  const auto text = parts_.head.reader.setting(kLoadHistory);
  if (text) {
    monitor::read_points(history_, *text);
  } else if (text.error().code() != Errc::NotFound) {
    log_warning("Cannot read the history of load", kv("err", text.error()));
  }
}

// A failure loses only what is newer than the last success.
void Monitoring::store_history() {
  if (!parts_.head.lease.holds()) return;
  parts_.head.commits.ask(
      {SaveSetting{std::string(kLoadHistory), write_points(history_)}}, [](const Status& stored) {
        if (stored) return;
        log_warning("Cannot store the history of load", kv("err", stored.error()));
      });
}

Result<std::string> Monitoring::history(const monitor::HistoryRequest& request) {
  return write_history(history_, request);
}

asio::awaitable<std::string> Monitoring::metrics() {
  co_await gather_totals();
  const monitor::HttpServer::Counts none;
  const monitor::ClusterView now = parts_.overview.view();
  const std::vector<FairShares::AccountUse> accounts = parts_.shares.accounts();
  const Pools pools = count_pools(parts_.head);
  const MetricsInput input{now,
                           parts_.head.runner.cluster().counters(),
                           parts_.life.waits(),
                           meter_,
                           hub_,
                           server_ ? server_->counts() : none,
                           parts_.control,
                           parts_.admin.permissions().denied(),
                           accounts,
                           parts_.notices.counts(),
                           parts_.overview.has_current_follower(),
                           pools};
  co_return metrics_text(input);
}

}  // namespace score::head

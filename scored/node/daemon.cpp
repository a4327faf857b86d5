#include "scored/node/daemon.hpp"

#include "base/async/timeout.hpp"
#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "base/overloaded.hpp"
#include "base/systemd/notify.hpp"
#include "gang/control/beat_timing.hpp"
#include "proto/convert/convert.hpp"
#include "proto/convert/words.hpp"
#include "proto/frames/hello.hpp"
#include "scored/node/facts.hpp"
#include "scored/node/kernel/memory.hpp"
#include "scored/node/network/own_address.hpp"
#include "scored/node/observe/activity.hpp"
#include "scored/node/observe/checkpoint.hpp"
#include "scored/node/observe/overdue.hpp"
#include "scored/shared/facts/host_facts.hpp"
#include "scored/shared/journal/event.hpp"

#include <algorithm>
#include <csignal>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::node {

namespace {

// The guard thaws at once when this daemon dies; the lease is for a daemon that hangs.
constexpr Duration kMinLease = std::chrono::milliseconds{2'900};
static_assert(kMinLease >= limits::kMinThawLease);
static_assert(limits::kHeartbeatPeriod * 2 < kMinLease, "renewed with each beat; one may be late");
static_assert(kMinLease < limits::kReconnectGrace, "its jobs run again before they end");
// A main loop that is this late with its turn is lent real-time priority.
constexpr Duration kLateTurn = std::chrono::milliseconds{500};
static_assert(limits::kHeartbeatPeriod + kLateTurn < limits::kSuspectAfter);
// A new node takes the least of several round trips, which bounds the clock's error. So it soon
// follows its first timetable accurately.
constexpr Duration kWireTime = std::chrono::microseconds{50};
// A clock with a greater error loses frames to other jobs' slices; PM sends them again.
constexpr Duration kMostGuard = std::chrono::milliseconds{2};
constexpr int kFirstExchanges = 10;
constexpr Duration kFirstExchangePause = std::chrono::milliseconds{20};
// Waking up for a reply costs a node as much as the heartbeat itself, so few heartbeats ask for
// one. The clock filter knows the drift in between, and the head's own clock has none.
constexpr unsigned kBeatsAnExchange = 2;
constexpr unsigned kBeatsAnExchangeOfSame = 3;
static_assert(kBeatsAnExchange * limits::kHeartbeatPeriod <= limits::kReconnectGrace);
static_assert(HeadLink::kSilenceLimit > std::chrono::seconds{1},
              "a reply may be a second late before the head counts as silent");
constexpr Duration kFarewell = std::chrono::milliseconds{500};

// The launcher serves in a directory of root.
bool is_of_root(const std::string& directory) {
  struct stat info {};

  return ::stat(directory.c_str(), &info) == 0 && info.st_uid == 0;
}

// While the head receives heartbeats over PM, one heartbeat in this many is also sent over TLS.
constexpr unsigned kBeatsOfTls = 5;
static_assert(kBeatsOfTls * limits::kHeartbeatPeriod + HeadLink::kSilenceLimit <
                  gang::BeatTiming{}.vouched_for,
              "a TLS connection that broke unnoticed is replaced before the node is suspected");

// Uses whole periods of the machine's own clock, so that its virtual nodes send heartbeats one
// after the other while the caches are warm. Real machines were booted at different times.
TimePoint next_beat(TimePoint now, Duration period) {
  return TimePoint((now.time_since_epoch() / period + 1) * period);
}

void log_failure(std::string_view task, const std::exception_ptr& exception) {
  log_error("Task failed", kv("task", task), kv("err", describe_exception(exception)));
}

}  // namespace

NodeDaemon::NodeDaemon(Parts parts, NodeConfig config)
    : parts_(parts),
      config_(std::move(config)),
      agent_(config_.for_agent()),
      tasks_(parts.io.get_executor(), &log_failure),
      launcher_(config_.launcher_dir, tasks_, parts.io.get_executor()),
      guard_(parts.cgroups != nullptr ? parts.cgroups->root() : std::string()),
      head_(parts.io.get_executor(), parts.tls, parts.clock, {config_.name, config_.head},
            head_handlers()),
      control_({parts.io.get_executor(),
                parts.clock,
                tasks_,
                head_,
                parts.switcher,
                agent_.clock(),
                {.beat_by_tls =
                     [this] {
                       if (head_.is_greeted()) beat(true);
                     },
                 .clock =
                     [this](const gang::ClockSample& sample) {
                       carry_out(agent_.on_clock(sample, parts_.clock.now()));
                     },
                 .hears_nothing = [this] { return head_.hears_nothing(); }},
                [this](const std::string& timetable) { on_timetable(timetable); }},
               {config_.control_over_pm, config_.network.switch_mode == SwitchMode::Barrier,
                control_interface(config_.network), config_.head.host}),
      networks_({head_, launcher_, tasks_}, config_.network, config_.head.host),
      hooks_({parts.clock, head_, tasks_}, {config_.hooks, config_.name, config_.run_dir + "/hooks",
                                            hook_place(config_.launcher_dir, config_.file)}),
      parker_(parker_parts(),
              {config_.name, park_socket(config_.launcher_dir), config_.jobs_memory}),
      attempts_({parts.io.get_executor(), parts.clock, tasks_, launcher_, guard_, head_,
                 parts.switcher, networks_, parts.cgroups, hooks_},
                {{config_.run_dir + "/shepherds",
                  parts.switcher.priority() == SwitchPriority::None,
                  {config_.job_memory, config_.job_processes},
                  {config_.processors, config_.first_core, config_.confine_cores, config_.cores},
                  {config_.generic, parts.cgroups != nullptr && is_of_root(config_.launcher_dir)}},
                 config_.name,
                 config_.login_socket,
                 config_.pario.path,
                 [this] { return own_address(config_.network, config_.head.host); }},
                shepherd_handlers(),
                [this](const proto::FoundAttempt& found) {
                  carry_out(agent_.adopt(found.placed, found.report(), found.has_begun(),
                                         parts_.clock.now()));
                }),
      sampling_({parts.clock, tasks_, head_, attempts_, parts.switcher, agent_, parts.cgroups,
                 networks_}),
      login_({parts.io.get_executor(), parts.tls, parts.clock, tasks_, attempts_.prover()},
             config_.head),
      lease_(kMinLease) {
  networks_.set_opened([this](AttemptId attempt, std::shared_ptr<ChannelUser> user) {
    parts_.switcher.set_network(attempt, std::move(user));
  });
}

ShepherdFrames::Handlers NodeDaemon::shepherd_handlers() {
  ShepherdFrames::Handlers handlers;
  handlers.event = [this](AttemptId attempt, const gang::ShepherdEvent& event) {
    const bool ends = std::holds_alternative<gang::ShepherdDone>(event) ||
                      std::holds_alternative<gang::ShepherdGone>(event);
    if (ends) agent_.set_filled(attempt, parts_.switcher.filled(attempt));
    carry_out(agent_.on_shepherd(attempt, event, parts_.clock.now()));
    if (std::holds_alternative<gang::ShepherdStarted>(event)) sampling_.tasks_changed();
  };
  handlers.out_of_memory = [this](AttemptId attempt, std::uint32_t kills, std::string reason) {
    agent_.note_oom_kills(attempt, kills, std::move(reason));
  };
  handlers.ended = [this](AttemptId attempt, std::string reason) {
    carry_out(agent_.end_attempt(attempt, std::move(reason), parts_.clock.now()));
  };
  return handlers;
}

HeadLink::Handlers NodeDaemon::head_handlers() {
  HeadLink::Handlers handlers;
  handlers.connected = [this] { carry_out(agent_.on_connected(parts_.clock.now())); };
  handlers.frame = [this](const proto::InFrame& frame) { on_frame(frame); };
  handlers.disconnected = [this] {
    report(Event::HeadLost, kv("node", config_.name), kv("timetable", "the last one"));
    parts_.switcher.set_meets(false);
    sampling_.stop();
    carry_out(agent_.on_disconnected(parts_.clock.now()));
    note_status();
  };
  handlers.beat = [this] { beat(true); };
  return handlers;
}

// ---- The actions of the agent -------------------------------------------------------------------

void NodeDaemon::carry_out(gang::NodeActions actions) {
  for (auto& action : actions) carry_out_one(std::move(action));
}

void NodeDaemon::carry_out_one(gang::NodeAction action) {
  std::visit(Overloaded{
                 [&](gang::LaunchShepherd& a) { launch(std::move(a)); },
                 [&](gang::StartShepherd& a) { attempts_.start(a.attempt); },
                 [&](gang::SignalShepherd& a) { attempts_.signal(a.attempt, a.signal); },
                 [&](gang::KillAttempt& a) { attempts_.kill(a.attempt); },
                 [&](gang::RetireAttempt& a) {
                   attempts_.retire(a.attempt);
                   sampling_.tasks_changed();
                 },
                 [&](gang::RemoveAttempt& a) {
                   parker_.forget(a.attempt);
                   attempts_.remove(a.attempt);
                   sampling_.tasks_changed();
                 },
                 [&](gang::FollowPlan& a) { follow(std::move(a)); },
                 [&](gang::SendToHead& a) { send(a.message); },
                 [&](gang::EndMeeting& a) { parts_.switcher.end_meeting(a.met); },
                 [&](gang::ParkAttempt& a) { parker_.obey(a.order); },
             },
             action);
}

Parker::Parts NodeDaemon::parker_parts() {
  return {parts_.clock,
          tasks_,
          [this](AttemptId id) {
            const TimePoint now = parts_.clock.now();
            return is_held_by(agent_.plan(), id, now) && !parts_.switcher.run_time(id, now).runs;
          },
          [this](AttemptId id) { return parts_.cgroups ? parts_.cgroups->tasks_path(id) : ""; },
          [this](const base::ParkReport& report) { carry_out(agent_.on_parked(report)); },
          [this](const base::MemoryReport& report) { send(report); }};
}

void NodeDaemon::launch(gang::LaunchShepherd order) {
  keeps_lease_ = true;
  guard_.renew(lease_);
  attempts_.launch(std::move(order));
}

void NodeDaemon::follow(gang::FollowPlan order) {
  Duration longest{0};
  for (const auto& segment : order.plan.segments) longest = std::max(longest, segment.length);
  lease_ = std::max<Duration>(kMinLease, limits::kThawLeaseQuanta * longest);
  parts_.switcher.follow(std::move(order.plan));
}

wire::Switching NodeDaemon::switching() const {
  return describe_switching(parts_.cgroups != nullptr, parts_.switcher.priority());
}

void NodeDaemon::send(const base::NodeToHead& message) {
  const auto* hello = std::get_if<base::NodeHello>(&message);
  if (hello == nullptr) {
    const auto frame = proto::encode(message);
    head_.send(frame.type, frame.payload);
    return;
  }
  auto wire = proto::make_hello(*hello);
  *wire.mutable_switching() = switching();
  wire.set_network_problem(networks_.problem());
  wire.set_pid(getpid());
  wire.set_release(std::string(facts::release()));
  wire.set_head_epoch(head_epoch_);
  wire.set_head_proof(head_proof_);
  wire.set_instance(instance_);
  given_job_.show(wire);
  wire.set_takes_attempt_secrets(true);
  wire.set_passes_refusals(true);
  wire.set_reads_stacks(true);
  head_.send(wire);
}

// ---- Frames of the head -------------------------------------------------------------------------

void NodeDaemon::on_frame(const proto::InFrame& frame) {
  if (proto::is_head_to_node(frame.type)) {
    const auto message = proto::decode_head_to_node(frame.type, frame.payload);
    if (!message) return head_.drop(message.error().message());
    given_job_.note(frame);
    if (const auto* forget = std::get_if<base::ForgetTasks>(&*message))
      hooks_.forgotten(forget->attempt);
    return carry_out(agent_.on_head(*message, parts_.clock.now()));
  }
  switch (frame.type) {
    case proto::FrameType::NodeWelcome:
      return on_welcome(frame);
    case proto::FrameType::Failed:
      return on_refused(frame);
    case proto::FrameType::HeartbeatReply:
      return on_heartbeat_reply(frame);
    case proto::FrameType::NodeTraceRequest:
      return on_trace_request(frame);
    case proto::FrameType::FactsRequest:
      return on_facts_request(frame);
    case proto::FrameType::StacksRequest:
    case proto::FrameType::CheckpointOrder:
      return on_attempt_request(frame);
    case proto::FrameType::WatchNode:
      return on_watch(frame);
    case proto::FrameType::HookReportTaken:
      return hooks_.taken(frame);
    case proto::FrameType::ControlKeys:
      return control_.on_keys(frame);
    case proto::FrameType::ControlRoster:
      return control_.on_roster(frame);
    default:
      if (!attempts_.from_head(frame)) head_.drop("unexpected frame");
  }
}

// Handles a timetable that came over PM. A node without the PM link gets it again when it joins.
void NodeDaemon::on_timetable(const std::string& timetable) {
  if (!head_.is_greeted()) return;
  const auto message = proto::decode_head_to_node(proto::FrameType::SetTimetable, timetable);
  if (!message) return head_.drop(message.error().message());
  carry_out(agent_.on_head(*message, parts_.clock.now()));
}

void NodeDaemon::on_welcome(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::NodeWelcome>(frame);
  if (!message) return head_.drop(message.error().message());
  if (const auto chosen = proto::check_chosen(message->version(), "the head"); !chosen) {
    return head_.drop(chosen.error().message());
  }
  if (message->head_epoch() < head_epoch_) {
    return head_.drop(fmt::format("older head: {} after {}", message->head_epoch(), head_epoch_));
  }
  head_epoch_ = message->head_epoch();
  head_proof_ = message->head_proof();
  agent_.set_head(Epoch(head_epoch_));
  agent_.set_same_clock(!message->clock().empty() && message->clock() == monotonic_clock_name());
  beats_ = 0;
  head_.set_greeted(message->bounded_exchange());
  hooks_.welcomed(message->takes_hook_reports(), attempts_.empty());
  parts_.switcher.set_meets(true);
  control_.welcomed(message->control_rank());
  attempts_.resume_all(message->takes_usage_samples());
  parker_.welcomed(message->takes_memory_reports());
  report(Event::NodeJoined, kv("node", config_.name), kv("cluster", message->cluster()),
         kv("epoch", head_epoch_));
  // The pages of the handshake are released before the first heartbeat reports the size.
  release_constant_pages();
  tasks_.spawn("synchronise the clock", synchronise(head_.generation()));
  note_status();
}

// The head does not support the version of this daemon.
void NodeDaemon::on_refused(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::Failed>(frame);
  if (!message) return head_.drop(message.error().message());
  head_.drop("the head refuses: " +
             escape_terminal(message->error().text(), limits::kMaxErrorTextBytes));
}

void NodeDaemon::on_heartbeat_reply(const proto::InFrame& frame) {
  const TimePoint now = parts_.clock.now();
  const auto message = proto::parse<wire::HeartbeatReply>(frame);
  if (!message) return head_.drop(message.error().message());
  head_.set_answered(TimePoint(Duration(message->node_sent_ns())));
  const gang::ClockSample sample{TimePoint(Duration(message->node_sent_ns())),
                                 TimePoint(Duration(message->head_received_ns())),
                                 TimePoint(Duration(message->head_sent_ns())), now};
  carry_out(agent_.on_clock(sample, now));
}

void NodeDaemon::on_trace_request(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::NodeTraceRequest>(frame);
  if (!message) return head_.drop(message.error().message());
  const TimePoint now = parts_.clock.now();
  wire::NodeTraceReply reply;
  reply.set_tag(message->tag());
  auto& trace = *reply.mutable_trace();
  const auto switches = parts_.switcher.trace().read(now - Duration(message->since_ns()));
  fill_trace(switches, agent_.clock(), now, trace);
  trace.set_node(config_.name);
  networks_.fill_figures(parts_.switcher.counters().channels, *trace.mutable_channels());
  parker_.fill_trace(now - Duration(message->since_ns()), trace);
  head_.send(reply);
}

void NodeDaemon::on_facts_request(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::FactsRequest>(frame);
  if (!message) return head_.drop(message.error().message());
  wire::FactsReply reply;
  reply.set_tag(message->tag());
  *reply.mutable_facts() = collect_facts(config_, parts_.cgroups);
  head_.send(reply);
}

void NodeDaemon::on_attempt_request(const proto::InFrame& frame) {
  const StacksParts parts{parts_.clock, agent_, attempts_, parts_.cgroups, networks_, head_};
  auto answer = answer_about_attempt(parts, frame);
  if (!answer) return head_.drop(answer.error().message());
  tasks_.spawn("answer about an attempt", *std::move(answer));
}

void NodeDaemon::on_watch(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::WatchNode>(frame);
  if (!message) return head_.drop(message.error().message());
  sampling_.watch(*message);
}

// ---- Regular work -------------------------------------------------------------------------------

void NodeDaemon::beat(bool asks) {
  const TimePoint now = parts_.clock.now();
  wire::Heartbeat message;
  // Nothing is switched now, so the pages that the last event brought in need not stay.
  if (vitals_.is_memory_due(now) && attempts_.empty()) release_constant_pages();
  vitals_.fill(message, now);
  set_guard();
  message.set_clock_error_ns(agent_.clock().error_bound(now).count());
  message.set_switches(parts_.switcher.counters().switches.load(std::memory_order_relaxed));
  message.set_late_switches(parts_.switcher.counters().late.load(std::memory_order_relaxed));
  message.set_stopping(is_stopping_);
  message.set_hears_nothing(!control_.is_linked() && head_.hears_nothing());
  if (asks) message.set_node_sent_ns(parts_.clock.now().time_since_epoch().count());
  if (asks) head_.set_asked();
  head_.send(message);
}

// Two nodes can be apart by twice the clocks' error, if each has drifted at the worst rate since
// its last exchange, and in opposite directions. Half of that is enough, because the maximum is
// hardly ever reached. Later frames are dropped by their key, and PM sends them again.
void NodeDaemon::set_guard() {
  const Duration error = agent_.clock().error_bound(parts_.clock.now());
  parts_.switcher.set_guard(std::min(error, kMostGuard - kWireTime) + kWireTime);
}

// If the head receives the node's heartbeats over PM, TLS is only checked from time to time.
void NodeDaemon::beat_over_tls(unsigned beats_an_exchange) {
  if (!head_.is_greeted()) return;
  ++beats_;
  if (!control_.is_linked()) return beat(beats_ % beats_an_exchange == 0);
  if (beats_ % kBeatsOfTls == 0) beat(true);
}

// All regular work shares one wake-up, which is its main cost.
asio::awaitable<void> NodeDaemon::beat_regularly() {
  for (;;) {
    const Duration period =
        sampling_.is_watched() ? limits::kWatchedHeartbeatPeriod : limits::kHeartbeatPeriod;
    co_await parts_.clock.sleep_until(next_beat(parts_.clock.now(), period));
    if (parts_.switcher.note_turn(parts_.clock.now(), period + kLateTurn)) {
      log_info("Main loop was late; it ran with real-time priority", kv("node", config_.name));
    }
    renew_lease();
    note_status();
    thaw_overdue(parts_.switcher, head_, config_.name, agent_.plan().epoch);
    report_late();
    const bool hears_head = head_.is_greeted() && !head_.is_silent();
    carry_out(agent_.release_displaced(hears_head, parts_.clock.now()));
    parts_.switcher.collect();  // releases the contexts of jobs that have ended
    beat_over_tls(agent_.clock().is_same() ? kBeatsAnExchangeOfSame : kBeatsAnExchange);
    read_activities_again();
    sampling_.report_filled();
    if (head_.is_silent()) tasks_.spawn("replace a silent link", head_.replace_if_silent());
  }
}

// Writes one line with the worst of the late switches since the last line. The job is the one that
// should have been continued.
void NodeDaemon::report_late() {
  sampling_.find_late_switches();
  const auto late = sampling_.take_late();
  if (!late) return;
  const SwitchRecord& worst = late->worst.record;
  const AttemptId attempt = worst.entered_count > 0 ? worst.entered[0] : worst.left[0];
  report(Event::SwitchLate, kv("node", config_.name), kv("job", job_of(attempt)),
         kv("late_us", std::chrono::ceil<std::chrono::microseconds>(worst.woke).count()),
         kv("slice_us", std::chrono::ceil<std::chrono::microseconds>(worst.slice).count()),
         kv("epoch", worst.epoch), kv("held_back", late->count - 1),
         kv("switches", late->switches));
}

asio::awaitable<void> NodeDaemon::synchronise(std::uint64_t generation) {
  for (int i = 0; i < kFirstExchanges && head_.generation() == generation; ++i) {
    beat(true);
    co_await parts_.clock.sleep_for(kFirstExchangePause);
  }
}

// If the switcher's thread hangs, the lease expires and the guard thaws the jobs. The service
// manager then misses the watchdog message and restarts the daemon.
void NodeDaemon::renew_lease() {
  const bool hangs = !parts_.switcher.makes_progress(parts_.clock.now());
  if (hangs != std::exchange(switcher_hangs_, hangs)) {
    log_error(hangs ? "The switcher's thread hangs; jobs run without slices until it continues"
                    : "The switcher's thread continues",
              kv("node", config_.name));
  }
  if (!keeps_lease_ || hangs) return;
  keeps_lease_ = !attempts_.empty();
  guard_.renew(keeps_lease_ ? lease_ : Duration{0});
}

// Reads the activities again when the switcher's thread signals that an attempt has become idle or
// busy.
asio::awaitable<void> NodeDaemon::watch_activity() {
  asio::posix::stream_descriptor bell(parts_.io, dup(parts_.switcher.activity_fd()));
  for (;;) {
    auto [failed] = co_await bell.async_wait(asio::posix::stream_descriptor::wait_read, kNoThrow);
    if (failed) co_return;
    eventfd_t rung = 0;
    eventfd_read(bell.native_handle(), &rung);
    for (const auto& reached : parts_.switcher.take_reached_meetings()) {
      carry_out(agent_.on_meeting(reached));
    }
    report_activities();
  }
}

void NodeDaemon::report_activities() {
  for (const auto& change : parts_.switcher.take_changed_activities()) {
    report_activity(change.attempt, change.idle);
  }
}

// A background job would receive frames of the jobs that share its channel, so such a job does not
// count as idle.
void NodeDaemon::report_activity(AttemptId attempt, bool is_idle) {
  is_idle = is_idle && !networks_.shares_channel(attempt);
  const auto activity = read_activity(is_idle, networks_.contexts().of(attempt).get());
  carry_out(agent_.on_activity(attempt, activity, parts_.clock.now()));
}

// Messages may arrive without making any task busy for long.
void NodeDaemon::read_activities_again() {
  for (const AttemptId attempt : networks_.contexts().attempts()) {
    if (parts_.switcher.is_idle(attempt)) report_activity(attempt, true);
  }
  carry_out(agent_.repeat_activities(parts_.clock.now()));
}

asio::awaitable<void> NodeDaemon::feed_watchdog(Duration period) {
  for (;;) {
    if (!switcher_hangs_) notify_watchdog();
    co_await parts_.clock.sleep_for(period);
  }
}

void NodeDaemon::note_status() {
  const char* link = head_.is_greeted() ? "connected to the head" : "no connection to the head";
  auto status = fmt::format("{}, {} attempts", link, agent_.attempts().size());
  if (status == status_) return;
  status_ = std::move(status);
  notify_status(status_);
}

// Announces the stop, so that the head does not take the loss of the connection for a failure,
// which would end the jobs before node_timeout. A head that does not answer detects the stop by the
// silence.
asio::awaitable<Status> NodeDaemon::announce_stop() {
  is_stopping_ = true;
  if (head_.is_greeted()) [[maybe_unused]]
    const bool known = co_await head_.confirm();
  co_return Status();
}

asio::awaitable<void> NodeDaemon::wait_for_signal() {
  asio::signal_set signals(parts_.io, SIGTERM, SIGINT, SIGHUP);
  for (;;) {
    auto [failed, number] = co_await signals.async_wait(kNoThrow);
    if (failed || number != SIGHUP) co_return;
    log_notice("Ignored SIGHUP: changes of the configuration need a restart");
  }
}

void NodeDaemon::follow_heads() {
  head_.await_head();
  const auto follow = [this](gang::HeadIndex head) {
    head_.set_head(config_.heads[head]);
    login_.set_head(config_.heads[head]);
  };
  WitnessLinks::Setup setup{config_.name, config_.heads, config_.run_dir + "/lease"};
  witness_.emplace(WitnessLinks::Parts{parts_.clock, tasks_, parts_.tls}, std::move(setup), follow);
  login_.ask_first([this] { return witness_->why_no_head(); });
  witness_->start();
}

asio::awaitable<void> NodeDaemon::run() {
  co_await attempts_.adopt_all();
  keeps_lease_ = !attempts_.empty();
  renew_lease();
  if (!config_.heads.empty()) follow_heads();
  tasks_.spawn("link to the head", head_.run());
  tasks_.spawn("heartbeat", beat_regularly());
  tasks_.spawn("watch activity", watch_activity());
  tasks_.spawn("check the health of the node", hooks_.check_health());
  if (const auto period = watchdog_period()) tasks_.spawn("watchdog", feed_watchdog(*period));
  if (config_.monitor.node_listen) {
    metrics_.emplace(Metrics::Parts{parts_.io, parts_.clock, tasks_, sampling_, attempts_,
                                    parts_.switcher, control_.network(), parker_},
                     config_.name);
    const auto started = metrics_->start(config_.monitor, config_.run_dir);
    if (!started) log_error("Cannot serve metrics", kv("err", started.error()));
  }
  if (const auto opened = login_.open(config_.login_socket); !opened) {
    log_error("Cannot accept commands of this host", kv("err", opened.error()));
  }
  notify_ready();
  note_status();
  release_constant_pages();
  report_core_control(config_, parts_.cgroups);
  report(Event::NodeStarted, kv("node", config_.name), kv("head", format_endpoint(config_.head)),
         kv("cgroups", parts_.cgroups != nullptr ? parts_.cgroups->root() : "none"),
         kv("priority", proto::word_of(switching().priority())));
  co_await wait_for_signal();
  notify_stopping();
  auto farewell = announce_stop();
  std::ignore = co_await with_timeout(parts_.clock, kFarewell, std::move(farewell));
  parts_.switcher.stop();
  guard_.renew(Duration{0});
  launcher_.close();
  login_.close();
  control_.close();
  if (metrics_) metrics_->close();
  co_await tasks_.stop();
  report(Event::NodeStopping, kv("node", config_.name), kv("attempts", agent_.attempts().size()));
}

}  // namespace score::node

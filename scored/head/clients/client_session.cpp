#include "scored/head/clients/client_session.hpp"

#include "base/limits.hpp"
#include "monitor/http/url.hpp"
#include "proto/convert/convert.hpp"
#include "proto/frames/errc.hpp"
#include "proto/frames/hello.hpp"
#include "proto/frames/parse.hpp"
#include "scored/head/config/version.hpp"

#include <algorithm>
#include <concepts>
#include <type_traits>
#include <utility>

namespace score::head {
namespace {

using proto::FrameType;

constexpr std::size_t kUnreadReplies = 1 * limits::kMiB;  // beyond it no requests are read
constexpr Duration kRoomPoll = 100ms;
constexpr Duration kForRole = 2s;  // how long to wait for the user directory
constexpr Duration kForName = 100ms;
constexpr Duration kSpareIdle = limits::kHeaderDeadline;
constexpr double kStreamFrameCost = 1.0 / 16;  // windows limit these frames already

// GetAccounting is treated as a list even if it names one job, because the job may belong to a
// different user or be unknown.
template <class Message>
concept AboutJob = !std::same_as<Message, wire::GetAccounting> && requires(const Message& message) {
  message.job();
};

template <class Message>
concept Administrative = requires(const Message& message) {
  from_wire(message);
};

template <class Message>
concept Tagged = requires(const Message& message) {
  message.tag();
};

template <class Message>
std::uint64_t tag_of([[maybe_unused]] const Message& message) {
  if constexpr (Tagged<Message>) return message.tag();
  return 0;
}

wire::Done done_reply(std::uint64_t tag, std::string text) {
  wire::Done reply;
  reply.set_tag(tag);
  reply.set_text(std::move(text));
  return reply;
}

bool is_stream_frame(FrameType type) {
  return type == FrameType::OutputTaken || type == FrameType::Input;
}

// Detaches the client from its jobs at the end of its coroutine, however that ends.
class ClientDetachGuard {
 public:
  ClientDetachGuard(JobStreams& streams, ClientId id, std::shared_ptr<proto::Connection> connection)
      : streams_(streams), id_(id), connection_(std::move(connection)) {}

  ClientDetachGuard(const ClientDetachGuard&) = delete;
  ClientDetachGuard& operator=(const ClientDetachGuard&) = delete;

  ~ClientDetachGuard() {
    connection_->close();
    streams_.client_gone(id_);
  }

 private:
  JobStreams& streams_;
  ClientId id_;
  std::shared_ptr<proto::Connection> connection_;
};

}  // namespace

ClientSession::ClientSession(const Parts& parts, Clock& clock, Setup setup)
    : parts_(parts),
      clock_(clock),
      id_(setup.id),
      peer_(std::move(setup.peer)),
      answers_(std::move(setup.connection), parts.head.lease),
      budget_(std::move(setup.budget)),
      turns_(std::move(setup.turns)),
      is_spare_(setup.is_spare),
      last_frame_(clock.now()) {}

ClientSession::~ClientSession() {
  if (viewer_) parts_.monitoring->leave(*viewer_);
}

bool ClientSession::is_idle(TimePoint now) const {
  if (is_spare_) return now - last_frame_ > kSpareIdle;
  return attached_ == 0 && !viewer_ && now - last_frame_ > parts_.head.config.idle_timeout;
}

asio::awaitable<void> ClientSession::run() {
  const ClientDetachGuard departure(parts_.streams, id_, answers_.frames());
  co_await identify();
  co_await serve();
}

// If the user directory hangs, only users whose names are not known yet are delayed, and only for a
// limited time. Then they have a number as name, and no rights as members of a group.
asio::awaitable<void> ClientSession::identify() {
  const bool needs_role = peer_.role != proto::Role::Root;
  co_await parts_.head.users.known(peer_.user, clock_.now(), needs_role ? kForRole : kForName);
  peer_.role = parts_.head.users.role(peer_.user, clock_.now());
  peer_.name = parts_.head.users.name(peer_.user, clock_.now());
}

asio::awaitable<void> ClientSession::serve() {
  const auto connection = answers_.frames();
  for (;;) {
    // Frames that only operators may send are no larger than a submission. They are read from every
    // user, so that the sender learns why they are refused.
    auto frame = co_await connection->read(greeted_ ? proto::Role::Root : proto::Role::Anonymous);
    if (!frame) {
      static LogLimiter limiter;
      if (!frame.error().is(Errc::Closed) && limiter.allow(clock_.now())) {
        log_warning("Refused client", kv("peer", connection->peer()), kv("err", frame.error()),
                    kv("suppressed", limiter.take_suppressed()));
      }
      co_return;
    }
    last_frame_ = clock_.now();
    const bool goes_on = co_await take_turn(std::move(*frame));
    if (!goes_on) co_return;
    if (connection->queued_bytes() > kUnreadReplies) co_await connection->drained(kUnreadReplies);
  }
}

// A user who sends too many requests, or does not read replies, waits; other users are not
// affected.
asio::awaitable<bool> ClientSession::take_turn(proto::InFrame frame) {
  const ByteShare held({budget_, &budget_->incoming}, frame.payload.size());
  co_await pay_for(frame);
  const bool may_reserve = proto::may_send(peer_.role, FrameType::Reserve);
  if (frame.type == FrameType::Reserve && may_reserve) co_await learn_users(frame.payload);
  // Stream frames and cancellations make room, or need none, so they do not wait.
  const bool needs_room = !is_stream_frame(frame.type) && frame.type != FrameType::CancelJob;
  std::optional<Turns::Turn> turn;
  do {  // the user's other requests may have taken the room in the meantime
    turn.reset();
    while (needs_room && !budget_->outgoing.has_room() && answers_.frames()->is_open()) {
      co_await clock_.sleep_for(kRoomPoll);
    }
    auto next = co_await turns_->take(peer_.user);
    if (!next || !answers_.frames()->is_open()) co_return false;
    turn.emplace(*std::move(next));
  } while (needs_room && !budget_->outgoing.has_room());
  const bool goes_on = dispatch(frame);
  // Time beyond the request's token is charged, so it delays the user's next request.
  const double tokens = std::chrono::duration<double>(turn->used()) / limits::kTokenTime;
  budget_->requests.reserve(clock_.now(), std::max(0.0, tokens - 1.0));
  co_return goes_on;
}

// Looks up the users of a reservation, so that their names are known when its command runs.
asio::awaitable<void> ClientSession::learn_users(std::string payload) {
  wire::Reserve message;
  if (!message.ParseFromString(payload)) co_return;
  const TimePoint until = clock_.now() + kForRole;
  const int count =
      std::min(message.reservation().users_size(), static_cast<int>(limits::kMaxReservationUsers));
  for (int i = 0; i < count && clock_.now() < until; ++i) {
    std::string name = message.reservation().users(i);
    co_await parts_.head.users.known(std::move(name), clock_.now(), kForRole);
  }
}

asio::awaitable<void> ClientSession::pay_for(const proto::InFrame& frame) {
  const double size = static_cast<double>(frame.payload.size()) / limits::kTokenBytes;
  const double least = is_stream_frame(frame.type) ? kStreamFrameCost : 1.0;
  const TimePoint paid = budget_->requests.reserve(clock_.now(), std::max(size, least));
  if (paid > clock_.now()) co_await clock_.sleep_until(paid);
}

// ---- dispatch -----------------------------------------------------------------------------------

bool ClientSession::dispatch(const proto::InFrame& frame) {
  if (!parts_.head.lease.holds()) {  // the request may be older than the other head's lease
    close();
    return false;
  }
  switch (frame.type) {
    case FrameType::ClientHello:
      return handle<wire::ClientHello>(frame);
    case FrameType::Submit:
      return handle<wire::Submit>(frame);
    case FrameType::Plan:
      return handle<wire::Plan>(frame);
    case FrameType::Attach:
      return handle<wire::Attach>(frame);
    case FrameType::Detach:
      return handle<wire::Detach>(frame);
    case FrameType::OutputTaken:
      return handle<wire::OutputTaken>(frame);
    case FrameType::Input:
      return handle<wire::Input>(frame);
    case FrameType::Resize:
      return handle<wire::Resize>(frame);
    case FrameType::SignalJob:
      return handle<wire::SignalJob>(frame);
    case FrameType::CancelJob:
      return handle<wire::CancelJob>(frame);
    case FrameType::ControlJob:
      return handle<wire::ControlJob>(frame);
    case FrameType::ChangeJob:
      return handle<wire::ChangeJob>(frame);
    case FrameType::ListJobs:
      return handle<wire::ListJobs>(frame);
    case FrameType::ListNodes:
      return handle<wire::ListNodes>(frame);
    case FrameType::ListReservations:
      return handle<wire::ListReservations>(frame);
    case FrameType::ListShares:
      return handle<wire::ListShares>(frame);
    case FrameType::GetProfile:
      return handle<wire::GetProfile>(frame);
    case FrameType::GetInfo:
      return handle<wire::GetInfo>(frame);
    case FrameType::GetTrace:
      return handle<wire::GetTrace>(frame);
    case FrameType::GetFacts:
      return handle<wire::GetFacts>(frame);
    case FrameType::GetStacks:
      return handle<wire::GetStacks>(frame);
    case FrameType::Checkpoint:
      return handle<wire::Checkpoint>(frame);
    case FrameType::GetAccounting:
      return handle<wire::GetAccounting>(frame);
    case FrameType::WatchCluster:
      return handle<wire::WatchCluster>(frame);
    case FrameType::WebLogin:
      return handle<wire::WebLogin>(frame);
    case FrameType::ManageTokens:
      return handle<wire::ManageTokens>(frame);
    default:
      return dispatch_command(frame);
  }
}

// Handles the commands of operators and root.
bool ClientSession::dispatch_command(const proto::InFrame& frame) {
  switch (frame.type) {
    case FrameType::Set:
      return handle<wire::Set>(frame);
    case FrameType::ChangeNodes:
      return handle<wire::ChangeNodes>(frame);
    case FrameType::DrainNodes:
      return handle<wire::DrainNodes>(frame);
    case FrameType::Reserve:
      return handle<wire::Reserve>(frame);
    case FrameType::Unreserve:
      return handle<wire::Unreserve>(frame);
    case FrameType::ManageKeys:
      return handle<wire::ManageKeys>(frame);
    case FrameType::Reload:
      return handle<wire::Reload>(frame);
    case FrameType::Shutdown:
      return handle<wire::Shutdown>(frame);
    default:
      return false;
  }
}

template <class Message>
bool ClientSession::handle(const proto::InFrame& frame) {
  auto message = proto::parse<Message>(frame);
  if (!message) {
    answers_.refuse(0, message.error());
    return false;
  }
  Status result = check(*message, frame.type);
  if constexpr (Administrative<Message>) {
    if (result) administer(*message);
  } else {
    if (result) result = on(*message);
  }
  if (!result) answers_.refuse(tag_of(*message), result.error());
  return greeted_;
}

// Checks permissions, except for administrative commands, which Admin checks.
template <class Message>
Status ClientSession::check([[maybe_unused]] const Message& message, FrameType type) {
  if (is_spare_ && greeted_ && type != FrameType::CancelJob) {
    return fail(Errc::Busy, "too many connections: only sccancel is accepted now");
  }
  if (greeted_ && Administrative<Message>) return {};
  Permissions::Request request{.type = type, .job = {}};
  request.is_greeted = greeted_;
  if constexpr (AboutJob<Message>) request.job = JobId(message.job());
  if constexpr (std::is_same_v<Message, wire::Submit>) {
    request.inside = JobId(message.resources().inside());
  }
  if constexpr (std::is_same_v<Message, wire::Plan>) {
    request.inside = JobId(message.submission().resources().inside());
  }
  if constexpr (std::is_same_v<Message, wire::Attach>) {
    request.drives = message.front_end() || message.input();
  }
  return parts_.admin.permissions().check(peer_, request);
}

template <class Message>
void ClientSession::administer(const Message& message) {
  parts_.admin.execute(peer_, from_wire(message),
                       [answers = answers_, tag = message.tag()](const auto& done) {
                         if (!done) return answers.refuse(tag, done.error());
                         answers.confirm(done_reply(tag, done->value), done->receipt);
                       });
}

Status ClientSession::done(std::uint64_t tag, std::string text) {
  parts_.head.commits.confirm(
      {}, [answers = answers_, tag, text = std::move(text)](const Result<LogReceipt>& logged) {
        if (!logged) return answers.refuse(tag, logged.error());
        answers.confirm(done_reply(tag, text), *logged);
      });
  return {};
}

// ---- handlers -----------------------------------------------------------------------------------

Status ClientSession::on(const wire::ClientHello& message) {
  if (greeted_) return fail(Errc::WrongState, "unexpected second hello");
  const auto version = proto::choose_version({message.lowest_version(), message.highest_version()},
                                             escape_terminal(message.program(), 80));
  if (!version) {
    return fail(proto::WireErrc::BadVersion, "{}; the head is of release {}",
                version.error().context(), kVersion);
  }
  wire::ServerHello reply;
  reply.set_version(*version);
  reply.set_cluster(parts_.head.config.cluster);
  reply.set_program(std::string("scored ") + kVersion);
  reply.set_user(peer_.user.value());
  reply.set_is_operator(peer_.role != proto::Role::OtherUser);
  answers_.show(reply);
  greeted_ = true;
  return {};
}

Status ClientSession::on(wire::Submit& message) {
  const std::uint64_t tag = message.tag();
  parts_.submissions.submit(
      peer_, std::move(message),
      [answers = answers_, tag](const Result<Logged<wire::Submitted>>& submitted) {
        if (!submitted) return answers.refuse(tag, submitted.error());
        wire::Submitted reply = submitted->value;
        reply.set_tag(tag);
        answers.confirm(reply, submitted->receipt);
      });
  return {};
}

Status ClientSession::on(wire::Plan& message) {
  auto planned = parts_.submissions.plan(peer_, std::move(*message.mutable_submission()));
  if (!planned) return planned.error();
  planned->set_tag(message.tag());
  answers_.show(*planned);
  return {};
}

void ClientSession::send_job(const wire::Attach& message, wire::JobStatus status, bool has_ended) {
  const auto send = [&](auto reply) {
    reply.set_tag(message.tag());
    *reply.mutable_status() = std::move(status);
    answers_.show(reply);
  };
  has_ended ? send(wire::JobEnded()) : send(wire::JobNews());
}

Status ClientSession::on(const wire::Attach& message) {
  const JobId id(message.job());
  const Job* job = parts_.head.jobs.find(id);
  if (job == nullptr || !job->ended) {
    auto status = parts_.queries.status(id);
    if (!status) return status.error();
    if (job == nullptr) parts_.streams.send_kept(id, *answers_.frames());
    send_job(message, std::move(*status), job == nullptr);
  }
  if (job != nullptr) {
    JobStreams::Watch watch;
    watch.client = id_;
    watch.connection = answers_.frames();
    watch.tag = message.tag();
    watch.front_end = message.front_end();
    watch.input = message.input();
    watch.window_bytes = message.window_bytes();
    watch.have_bytes = message.have_bytes();
    if (auto attached = parts_.streams.attach(id, watch); !attached) return attached;
    if (message.front_end()) {
      // A stopped terminal holds its job back; nothing is lost.
      answers_.frames()->disable_write_deadline();
      parts_.life.front_end_attached(id);
    }
  }
  ++attached_;
  return {};
}

Status ClientSession::on(const wire::Detach& message) {
  const JobId id(message.job());
  attached_ -= std::min<std::size_t>(attached_, 1);
  if (!parts_.streams.detach(id, id_)) return done(message.tag());
  parts_.life.front_end_left(
      id, [answers = answers_, tag = message.tag()](const Result<LogReceipt>& left) {
        if (!left) return answers.refuse(tag, left.error());
        answers.confirm(done_reply(tag, {}), *left);
      });
  return {};
}

Status ClientSession::on(const wire::OutputTaken& message) {
  parts_.streams.taken(JobId(message.job()), id_, message.bytes());
  return {};
}

Status ClientSession::on(wire::Input& message) {
  return parts_.streams.input(JobId(message.job()), id_, std::move(*message.mutable_data()),
                              message.eof());
}

Status ClientSession::on(const wire::Resize& message) {
  parts_.streams.resize(JobId(message.job()), id_, message.rows(), message.columns());
  return {};
}

Status ClientSession::on(const wire::ListJobs& message) {
  auto list = parts_.queries.list(peer_, message);
  if (!list) return list.error();
  list->set_tag(message.tag());
  answers_.show(*list);
  return {};
}

Status ClientSession::on(const wire::ListShares& message) {
  wire::ShareList list = parts_.shares.list(peer_);
  list.set_tag(message.tag());
  answers_.show(list);
  return {};
}

Status ClientSession::on(const wire::GetProfile& message) {
  auto profile = parts_.queries.profile(peer_, JobId(message.job()));
  if (!profile) return profile.error();
  profile->set_tag(message.tag());
  answers_.show(*profile);
  return {};
}

Status ClientSession::on(const wire::ListReservations& message) {
  wire::ReservationList list = parts_.overview.reservations(peer_);
  list.set_tag(message.tag());
  answers_.show(list);
  return {};
}

Status ClientSession::on(const wire::ListNodes& message) {
  wire::NodeList list = parts_.overview.nodes();
  list.set_tag(message.tag());
  answers_.show(list);
  return {};
}

Status ClientSession::on(const wire::GetInfo& message) {
  wire::Info info = parts_.overview.info();
  info.set_tag(message.tag());
  answers_.show(info);
  return {};
}

Status ClientSession::on(const wire::GetTrace& message) {
  if (message.since_ns() < 0) return fail(Errc::Malformed, "a trace cannot start in the future");
  return parts_.traces.gather(fmt::format("{}", peer_.user), Duration(message.since_ns()),
                              [answers = answers_, tag = message.tag()](wire::Trace trace) {
                                trace.set_tag(tag);
                                answers.show(trace);
                              });
}

Status ClientSession::on(const wire::GetFacts& message) {
  return parts_.facts.gather(fmt::format("{}", peer_.user),
                             [answers = answers_, tag = message.tag()](wire::Facts facts) {
                               facts.set_tag(tag);
                               answers.show(facts);
                             });
}

Status ClientSession::on(const wire::GetStacks& message) {
  return parts_.stacks.read(fmt::format("{}", peer_.user), message,
                            [answers = answers_, tag = message.tag()](wire::Stacks stacks) {
                              stacks.set_tag(tag);
                              answers.show(stacks);
                            });
}

Status ClientSession::on(const wire::Checkpoint& message) {
  return parts_.checkpoints.save(fmt::format("{}", peer_.user), message,
                                 [answers = answers_, tag = message.tag()](auto saved) {
                                   saved.set_tag(tag);
                                   answers.show(saved);
                                 });
}

Status ClientSession::on(const wire::GetAccounting& message) {
  auto page = parts_.queries.accounting(peer_, message);
  if (!page) return page.error();
  page->set_tag(message.tag());
  answers_.show(*page);
  return {};
}

Status ClientSession::on(const wire::WatchCluster& message) {
  if (parts_.monitoring == nullptr)
    return fail(Errc::Unsupported, "this head offers nothing to watch");
  const auto query = monitor::parse_query(message.query());
  if (!query) return query.error();
  const auto options = monitor::read_query(*query, monitor::ViewerOptions());
  if (!options) return options.error();
  const monitor::Sight sight =
      parts_.monitoring->sight_of(monitor::WebUser{peer_.user, peer_.name});
  const std::string owner = fmt::format("user {}", peer_.user);
  const auto give = [answers = answers_, tag = message.tag()](const std::string& document) {
    wire::Snapshot snapshot;
    snapshot.set_tag(tag);
    snapshot.set_document(document);
    answers.show(snapshot);
  };
  if (!message.follow()) {
    return parts_.monitoring->measured_snapshot(
        owner, options->filter, sight, [give](const monitor::Frame& frame) { give(*frame); });
  }
  if (viewer_) return fail(Errc::WrongState, "this connection already watches the cluster");
  // A client that has not read the last document yet misses this one.
  auto joined = parts_.monitoring->join(
      owner, *options, sight, [give, connection = answers_.frames()](monitor::Frame frame) {
        if (connection->queued_bytes() > 0) return false;
        give(*frame);
        return true;
      });
  if (!joined) return joined.error();
  viewer_ = *joined;
  return {};
}

Status ClientSession::on(const wire::ManageKeys& message) {
  if (!parts_.keys) return fail(Errc::WrongState, "the head is starting; try again");
  parts_.keys(
      peer_, message,
      [answers = answers_, tag = message.tag()](const Result<Logged<wire::NodeKeyList>>& listed) {
        if (!listed) return answers.refuse(tag, listed.error());
        wire::NodeKeyList reply = listed->value;
        reply.set_tag(tag);
        answers.confirm(reply, listed->receipt);
      });
  return {};
}

Status ClientSession::on(const wire::ManageTokens& message) {
  if (!parts_.tokens) return fail(Errc::WrongState, "the head is starting; try again");
  parts_.tokens(
      peer_, message,
      [answers = answers_, tag = message.tag()](const Result<Logged<wire::TokenList>>& listed) {
        if (!listed) return answers.refuse(tag, listed.error());
        wire::TokenList reply = listed->value;
        reply.set_tag(tag);
        answers.confirm(reply, listed->receipt);
      });
  return {};
}

Status ClientSession::on(const wire::WebLogin& message) {
  if (parts_.monitoring == nullptr)
    return fail(Errc::Unsupported, "the head serves no dashboard ([monitor] listen)");
  auto address = parts_.monitoring->web_login(peer_);
  if (!address) return address.error();
  return done(message.tag(), *std::move(address));
}

}  // namespace score::head

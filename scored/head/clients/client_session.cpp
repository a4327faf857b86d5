#include "scored/head/clients/client_session.hpp"

#include "base/limits.hpp"
#include "monitor/http/url.hpp"
#include "proto/convert/convert.hpp"
#include "proto/frames/errc.hpp"
#include "proto/frames/hello.hpp"
#include "proto/frames/parse.hpp"
#include "scored/head/config/settings.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

using proto::FrameType;

constexpr std::size_t kUnreadReplies = 1 * limits::kMiB;  // then no more requests are read
constexpr Duration kSpareIdle = limits::kHeaderDeadline;
constexpr double kStreamFrameCost = 1.0 / 16;  // windows bound what they can do

template <class Message>
concept AboutJob = requires(const Message& message) {
  message.job();
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

void send_failed(proto::Connection& connection, std::uint64_t tag, const Error& error) {
  wire::Failed failed;
  failed.set_tag(tag);
  *failed.mutable_error() = proto::to_wire(error);
  // Our own codes say no more than the line before them; the kernel's do.
  const bool is_own = error.code().category() == errc_category();
  if (is_own && !error.context().empty()) {
    failed.mutable_error()->set_text(error.context().substr(0, limits::kMaxErrorTextBytes));
  }
  proto::send(connection, failed);
}

// Tells the head that the client is gone, however its coroutine ends.
class Departure {
 public:
  Departure(Head& head, ClientId id, std::shared_ptr<proto::Connection> connection)
      : head_(head), id_(id), connection_(std::move(connection)) {}

  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;

  ~Departure() {
    connection_->close();
    head_.streams().client_gone(id_);
  }

 private:
  Head& head_;
  ClientId id_;
  std::shared_ptr<proto::Connection> connection_;
};

}  // namespace

ClientSession::ClientSession(Head& head, Clock& clock, const DaemonRequests& daemon, Setup setup)
    : head_(head),
      clock_(clock),
      daemon_(daemon),
      id_(setup.id),
      peer_(std::move(setup.peer)),
      connection_(std::move(setup.connection)),
      budget_(std::move(setup.budget)),
      is_spare_(setup.is_spare),
      last_frame_(clock.now()) {}

ClientSession::~ClientSession() {
  if (viewer_) daemon_.site->leave(*viewer_);
}

bool ClientSession::is_idle(TimePoint now) const {
  if (is_spare_) return now - last_frame_ > kSpareIdle;
  return attached_ == 0 && !viewer_ && now - last_frame_ > head_.config().idle_timeout;
}

asio::awaitable<void> ClientSession::run() {
  const Departure departure(head_, id_, connection_);
  co_await serve();
}

asio::awaitable<void> ClientSession::serve() {
  for (;;) {
    auto frame = co_await connection_->read(greeted_ ? peer_.role : proto::Role::Anonymous);
    if (!frame) {
      static LogLimiter limiter;
      if (!frame.error().is(Errc::Closed) && limiter.allow(clock_.now())) {
        log_warning("refuse client", kv("peer", connection_->peer()), kv("err", frame.error()),
                    kv("suppressed", limiter.take_suppressed()));
      }
      co_await tell_refused(frame.error());
      co_return;
    }
    last_frame_ = clock_.now();
    co_await pay_for(frame->type);
    if (!dispatch(*frame)) co_return;
    if (connection_->queued_bytes() > kUnreadReplies) co_await connection_->drained(kUnreadReplies);
  }
}

// Whose frame was not even read still learns why. The connection is of no more use.
asio::awaitable<void> ClientSession::tell_refused(const Error& error) {
  if (!greeted_ || !error.is(proto::WireErrc::NotAllowed)) co_return;
  const char* who = peer_.role == proto::Role::OtherUser ? "operators" : "root";
  send_failed(*connection_, 0, fail(Errc::Denied, "{}: only {} may do this", peer_.name, who));
  co_await connection_->drained(1);
}

// A user who asks too much waits; others do not notice.
asio::awaitable<void> ClientSession::pay_for(FrameType type) {
  const bool is_stream = type == FrameType::OutputTaken || type == FrameType::Input;
  const double cost = is_stream ? kStreamFrameCost : 1.0;
  const TimePoint paid = budget_->reserve(clock_.now(), cost);
  if (paid > clock_.now()) co_await clock_.sleep_until(paid);
}

// ---- dispatch -----------------------------------------------------------------------------------

bool ClientSession::dispatch(const proto::InFrame& frame) {
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
    case FrameType::ListJobs:
      return handle<wire::ListJobs>(frame);
    case FrameType::ListNodes:
      return handle<wire::ListNodes>(frame);
    case FrameType::GetInfo:
      return handle<wire::GetInfo>(frame);
    case FrameType::GetTrace:
      return handle<wire::GetTrace>(frame);
    case FrameType::GetAccounting:
      return handle<wire::GetAccounting>(frame);
    case FrameType::WatchCluster:
      return handle<wire::WatchCluster>(frame);
    case FrameType::WebLogin:
      return handle<wire::WebLogin>(frame);
    case FrameType::SetQuantum:
      return handle<wire::SetQuantum>(frame);
    case FrameType::SetIdleDetection:
      return handle<wire::SetIdleDetection>(frame);
    case FrameType::SetSlots:
      return handle<wire::SetSlots>(frame);
    case FrameType::DrainNodes:
      return handle<wire::DrainNodes>(frame);
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
    send_failed(*connection_, 0, message.error());
    return false;
  }
  const auto role = role_for(*message);
  Status result;
  if (!role) {
    result = role.error();
  } else if (!proto::may_send(*role, frame.type)) {
    result = fail(Errc::Denied, "{} may not do this", peer_.name);
  } else if (is_spare_ && greeted_ && frame.type != FrameType::CancelJob) {
    result = fail(Errc::Busy, "too many connections: only jobs may be ended now");
  } else {
    result = on(*message);
  }
  if (!result) send_failed(*connection_, tag_of(*message), result.error());
  return greeted_;
}

// Towards a job its user is its owner; operators and root stay what they are.
template <class Message>
Result<proto::Role> ClientSession::role_for(const Message& message) {
  if (!greeted_) return proto::Role::Anonymous;
  if constexpr (AboutJob<Message>) {
    auto owner = head_.owner(JobId(message.job()));
    if (!owner) return owner.error();
    if (peer_.role == proto::Role::OtherUser && *owner == peer_.user) return proto::Role::Owner;
  }
  return peer_.role;
}

Status ClientSession::done(std::uint64_t tag, std::string text) {
  wire::Done reply;
  reply.set_tag(tag);
  reply.set_text(std::move(text));
  proto::send(*connection_, reply);
  return {};
}

// ---- handlers -----------------------------------------------------------------------------------

Status ClientSession::on(const wire::ClientHello& message) {
  if (greeted_) return fail(Errc::WrongState, "one hello is enough");
  const auto version =
      proto::choose_version({message.lowest_version(), message.highest_version()}, "client");
  if (!version) return version.error();
  wire::ServerHello reply;
  reply.set_version(*version);
  reply.set_cluster(head_.config().cluster);
  reply.set_program(std::string("scored ") + kVersion);
  reply.set_user(peer_.user.value());
  reply.set_is_operator(peer_.role != proto::Role::OtherUser);
  proto::send(*connection_, reply);
  greeted_ = true;
  return {};
}

Status ClientSession::on(wire::Submit& message) {
  const std::uint64_t tag = message.tag();
  head_.submit(peer_, std::move(message),
               [connection = connection_, tag](const Result<wire::Submitted>& submitted) {
                 if (!submitted) return send_failed(*connection, tag, submitted.error());
                 wire::Submitted reply = *submitted;
                 reply.set_tag(tag);
                 proto::send(*connection, reply);
               });
  return {};
}

Status ClientSession::on(wire::Plan& message) {
  auto planned = head_.plan(peer_, std::move(*message.mutable_submission()));
  if (!planned) return planned.error();
  planned->set_tag(message.tag());
  proto::send(*connection_, *planned);
  return {};
}

Status ClientSession::on(const wire::Attach& message) {
  auto attached = head_.attach(message, id_, connection_);
  if (attached) ++attached_;
  return attached;
}

Status ClientSession::on(const wire::Detach& message) {
  if (auto left = head_.detach(JobId(message.job()), id_); !left) return left;
  attached_ -= std::min<std::size_t>(attached_, 1);
  return done(message.tag());
}

Status ClientSession::on(const wire::OutputTaken& message) {
  head_.streams().taken(JobId(message.job()), id_, message.bytes());
  return {};
}

Status ClientSession::on(wire::Input& message) {
  return head_.streams().input(JobId(message.job()), id_, std::move(*message.mutable_data()),
                               message.eof());
}

Status ClientSession::on(const wire::Resize& message) {
  head_.streams().resize(JobId(message.job()), id_, message.rows(), message.columns());
  return {};
}

Status ClientSession::on(const wire::SignalJob& message) {
  if (auto sent = head_.signal(peer_, message); !sent) return sent;
  return done(message.tag());
}

Status ClientSession::on(const wire::CancelJob& message) {
  if (auto cancelled = head_.cancel(peer_, message); !cancelled) return cancelled;
  return done(message.tag());
}

Status ClientSession::on(const wire::ControlJob& message) {
  if (auto controlled = head_.control(peer_, message); !controlled) return controlled;
  return done(message.tag());
}

Status ClientSession::on(const wire::ListJobs& message) {
  auto list = head_.list_jobs(peer_, message);
  if (!list) return list.error();
  list->set_tag(message.tag());
  proto::send(*connection_, *list);
  return {};
}

Status ClientSession::on(const wire::ListNodes& message) {
  wire::NodeList list = head_.list_nodes();
  list.set_tag(message.tag());
  proto::send(*connection_, list);
  return {};
}

Status ClientSession::on(const wire::GetInfo& message) {
  wire::Info info = head_.info();
  info.set_tag(message.tag());
  proto::send(*connection_, info);
  return {};
}

Status ClientSession::on(const wire::GetTrace& message) {
  if (message.since_ns() < 0) return fail(Errc::Malformed, "a trace of the future");
  return head_.trace(Duration(message.since_ns()),
                     [connection = connection_, tag = message.tag()](wire::Trace trace) {
                       trace.set_tag(tag);
                       proto::send(*connection, trace);
                     });
}

Status ClientSession::on(const wire::GetAccounting& message) {
  auto page = head_.accounting(peer_, message);
  if (!page) return page.error();
  page->set_tag(message.tag());
  proto::send(*connection_, *page);
  return {};
}

Status ClientSession::on(const wire::WatchCluster& message) {
  if (daemon_.site == nullptr) return fail(Errc::Unsupported, "nothing is watched here");
  const auto query = monitor::parse_query(message.query());
  if (!query) return query.error();
  const auto options = monitor::read_query(*query, monitor::ViewerOptions());
  if (!options) return options.error();
  const monitor::Sight sight = daemon_.site->sight_of(monitor::WebUser{peer_.user, peer_.name});
  const auto give = [connection = connection_, tag = message.tag()](const std::string& document) {
    wire::Snapshot snapshot;
    snapshot.set_tag(tag);
    snapshot.set_document(document);
    proto::send(*connection, snapshot);
  };
  if (!message.follow()) {
    return daemon_.site->measured_snapshot(options->filter, sight,
                                           [give](const monitor::Frame& frame) { give(*frame); });
  }
  if (viewer_) return fail(Errc::WrongState, "it watches already");
  // What a client has not read yet is enough: it misses this one.
  auto joined =
      daemon_.site->join(*options, sight, [give, connection = connection_](monitor::Frame frame) {
        if (connection->queued_bytes() > 0) return false;
        give(*frame);
        return true;
      });
  if (!joined) return joined.error();
  viewer_ = *joined;
  return {};
}

Status ClientSession::on(const wire::WebLogin& message) {
  if (!daemon_.web_login) return fail(Errc::Unsupported, "there is no dashboard");
  auto address = daemon_.web_login(peer_);
  if (!address) return address.error();
  return done(message.tag(), *std::move(address));
}

Status ClientSession::on(const wire::SetQuantum& message) {
  const Duration quantum(message.quantum_ns());
  if (auto set = head_.set_quantum(peer_, quantum); !set) return set;
  return done(message.tag(), "quantum " + format_duration(quantum) + " from the next boundary on");
}

Status ClientSession::on(const wire::SetIdleDetection& message) {
  head_.set_idle_detection(peer_, message.on());
  return done(message.tag(),
              message.on() ? "idle jobs give their slices away" : "idle jobs keep their slices");
}

Status ClientSession::on(const wire::SetSlots& message) {
  if (auto set = head_.set_slots(peer_, message.slots()); !set) return set;
  return done(message.tag(), "slots " + std::to_string(message.slots()));
}

Status ClientSession::on(const wire::DrainNodes& message) {
  if (auto drained = head_.drain(peer_, message); !drained) return drained;
  return done(message.tag());
}

Status ClientSession::on(const wire::Reload& message) {
  if (auto reloaded = daemon_.reload(); !reloaded) return reloaded;
  return done(message.tag(), "configuration read");
}

Status ClientSession::on(const wire::Shutdown& message) {
  head_.shut_down(peer_, [connection = connection_, tag = message.tag(), exit = daemon_.exit] {
    wire::Done reply;
    reply.set_tag(tag);
    reply.set_text("every job has ended");
    proto::send(*connection, reply);
    exit();
  });
  return {};
}

}  // namespace score::head

#include "scored/head/process/log_shipper.hpp"

#include "base/limits.hpp"
#include "proto/frames/parse.hpp"
#include "scored/head/store/schema.hpp"
#include "scored/shared/journal/event.hpp"
#include "scored/shared/leases/lease_wire.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kPartBytes = 1 * limits::kMiB;
constexpr std::size_t kQueuedParts = 4 * limits::kMiB;
constexpr std::size_t kMostBacklog = limits::kMaxPeerQueueBytes;
constexpr std::size_t kMostChanges = limits::kMaxPeerQueueBytes - 1 * limits::kMiB;
// A follower that stores nothing for this time is dropped, so that clients do not wait for it.
constexpr Duration kStoreDeadline = 3s;

}  // namespace

LogShipper::LogShipper(Parts parts, Epoch term) : parts_(std::move(parts)), term_(term) {
  parts_.commits.on_committed([this](std::uint64_t sequence, std::string changes) {
    committed(sequence, std::move(changes));
  });
}

void LogShipper::frame(const proto::InFrame& frame) {
  if (frame.type == proto::FrameType::FollowLog) return follow(frame);
  if (frame.type == proto::FrameType::LogStored) return stored(frame);
  parts_.election.drop_other("unexpected frame for a head in charge");
}

void LogShipper::follow(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::FollowLog>(frame);
  const auto position = message ? proto::from_wire(message->position()) : message.error();
  if (!position) return parts_.election.drop_other(position.error().message());
  // A head of an older release is not copied a database that it cannot read. It stays connected,
  // because it still grants leases, and repeats its request.
  if (message->schema() < kSchemaVersion) {
    if (refusals_.allow(parts_.clock.now())) {
      log_error("The other head cannot read this database; upgrade it",
                kv("supports", message->schema()), kv("schema", kSchemaVersion),
                kv("suppressed", refusals_.take_suppressed()));
    }
    return;
  }
  if (is_copying_ && follower_ == parts_.election.other()) return;  // a repeated request
  follower_ = parts_.election.other();
  ++stream_;
  backlog_.clear();
  backlog_bytes_ = 0;
  waits_since_.reset();
  if (*position == gang::LogPosition{term_, committed_}) {
    wire::LogSnapshot nothing;
    *nothing.mutable_position() = proto::to_wire(*position);
    is_copying_ = false;
    proto::send(*follower_, nothing);
    return;
  }
  start_copy();
}

// ---- database copy ------------------------------------------------------------------------------

void LogShipper::start_copy() {
  is_copying_ = true;
  copied_.reset();
  log_notice("Copying the database to the other head", kv("sequence", committed_));
  parts_.commits.copy(parts_.copy, [this, stream = stream_](const Result<std::uint64_t>& copied) {
    if (stream != stream_ || !follower_) return;
    if (!copied) return give_up("cannot copy the database: " + copied.error().message());
    auto file = open_file(parts_.copy, O_RDONLY);
    if (!file) return give_up(file.error().message());
    ::unlink(parts_.copy.c_str());
    copied_ = *copied;
    parts_.tasks.spawn("send a copy of the database", send_copy(*std::move(file), *copied, stream));
  });
}

asio::awaitable<void> LogShipper::send_copy(UniqueFd file, std::uint64_t sequence,
                                            std::uint64_t stream) {
  struct stat info {};

  const ConnectionPtr connection = follower_;
  if (::fstat(file.get(), &info) != 0 || info.st_size <= 0) co_return give_up("the copy is empty");
  wire::LogSnapshot head;
  *head.mutable_position() = proto::to_wire(gang::LogPosition{term_, sequence});
  head.set_bytes(static_cast<std::uint64_t>(info.st_size));
  proto::send(*connection, head);
  std::string buffer(kPartBytes, '\0');
  for (std::uint64_t left = head.bytes(); left > 0;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (stream != stream_) co_return;
    if (got <= 0) co_return give_up("cannot read the copy");
    wire::LogPart part;
    part.set_data(buffer.data(), static_cast<std::size_t>(got));
    left -= static_cast<std::uint64_t>(got);
    if (!proto::send(*connection, part)) co_return;
    co_await connection->drained(kQueuedParts);
    if (stream != stream_ || !connection->is_open()) co_return;
  }
  is_copying_ = false;
  send_backlog();
}

void LogShipper::send_backlog() {
  while (!backlog_.empty() && follower_) {
    std::string payload = std::move(backlog_.front());
    backlog_.pop_front();
    ship(std::move(payload));
  }
  backlog_bytes_ = 0;
}

// ---- transactions -------------------------------------------------------------------------------

void LogShipper::committed(std::uint64_t sequence, std::string changes) {
  committed_ = sequence;
  parts_.election.committed(sequence);
  const bool is_in_copy = is_copying_ && copied_ && sequence <= *copied_;
  if (!follower_ || is_in_copy) return advance();
  if (changes.size() > kMostChanges) {
    give_up("a transaction is too large for one frame");
    return advance();
  }
  wire::LogChanges message;
  *message.mutable_position() = proto::to_wire(gang::LogPosition{term_, sequence});
  message.set_changes(std::move(changes));
  std::string payload = message.SerializeAsString();
  if (!is_copying_) {
    ship(std::move(payload));
  } else if (copied_) {
    backlog_bytes_ += payload.size();
    backlog_.push_back(std::move(payload));
    if (backlog_bytes_ > kMostBacklog) give_up("the follower receives the copy too slowly");
  }
  advance();
}

void LogShipper::ship(std::string payload) {
  if (!waits_since_) waits_since_ = parts_.clock.now();
  if (!follower_->send(proto::FrameType::LogChanges, payload))
    give_up("the follower reads too slowly");
}

void LogShipper::stored(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::LogStored>(frame);
  const auto position = message ? proto::from_wire(message->position()) : message.error();
  if (!position) return parts_.election.drop_other(position.error().message());
  if (is_copying_) return;  // belongs to the stream before this copy
  const bool is_possible = follower_ && follower_ == parts_.election.other() &&
                           position->term == term_ && position->sequence <= committed_;
  if (!is_possible)
    return parts_.election.drop_other("the follower reported an impossible position");
  stored_ = position->sequence;
  waits_since_.reset();
  if (stored_ < committed_) waits_since_ = parts_.clock.now();
  if (parts_.election.has_current_follower()) {
    parts_.election.follower_stored(stored_);
  } else {
    parts_.election.follower_current(stored_);
    if (parts_.election.has_current_follower()) {
      report(Event::FollowerCurrent, kv("head", format_endpoint(parts_.election.other_endpoint())),
             kv("sequence", stored_));
    }
  }
  advance();
}

void LogShipper::advance() {
  parts_.commits.release(parts_.election.acknowledged());
}

void LogShipper::tick(TimePoint now) {
  if (waits_since_ && now - *waits_since_ > kStoreDeadline)
    give_up("the follower does not store the log");
}

// Drops the follower, which then reconnects and gets a copy.
void LogShipper::give_up(const std::string& why) {
  parts_.election.drop_other(why);
  lost();
}

void LogShipper::lost() {
  if (!follower_) return;
  ++stream_;
  follower_ = nullptr;
  is_copying_ = false;
  backlog_.clear();
  backlog_bytes_ = 0;
  waits_since_.reset();
  report(Event::FollowerLost, kv("head", format_endpoint(parts_.election.other_endpoint())));
  parts_.election.follower_lost();
}

}  // namespace score::head

#include "scored/head/process/log_follower.hpp"

#include "base/limits.hpp"
#include "proto/frames/parse.hpp"
#include "scored/head/store/schema.hpp"
#include "scored/shared/leases/lease_wire.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr Duration kAskAgain = 1s;
constexpr std::size_t kMostWaiting = 2 * limits::kMaxPeerQueueBytes;

}  // namespace

void LogFollower::follow() {
  const TimePoint now = parts_.clock.now();
  const bool waits = follows_ && (is_answered_ || now - asked_ < kAskAgain);
  if (waits || !parts_.election.other()) return;
  follows_ = true;
  is_answered_ = false;
  asked_ = now;
  ++stream_;
  wire::FollowLog message;
  *message.mutable_position() = proto::to_wire(parts_.election.position());
  message.set_schema(kSchemaVersion);
  proto::send(*parts_.election.other(), message);
}

void LogFollower::lost() {
  follows_ = false;
  ++stream_;
  file_.reset();
  missing_ = 0;
}

void LogFollower::give_up(const std::string& why) {
  parts_.election.drop_other(why);
  lost();
}

void LogFollower::frame(const proto::InFrame& frame) {
  // A head that stands for election accepts nothing more, because its position decides the
  // election.
  if (parts_.election.role() != gang::LeadershipRole::Follower || !follows_) return;
  switch (frame.type) {
    case proto::FrameType::LogSnapshot:
      return begin(frame);
    case proto::FrameType::LogPart:
      return part(frame);
    case proto::FrameType::LogChanges:
      return changes(frame);
    default:
      return give_up("unexpected frame for a follower");
  }
}

// ---- database copy ------------------------------------------------------------------------------

void LogFollower::begin(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::LogSnapshot>(frame);
  const auto position = message ? proto::from_wire(message->position()) : message.error();
  if (!position) return give_up(position.error().message());
  is_answered_ = true;
  if (message->bytes() == 0) return done(*position, stream_, {});
  ::unlink(parts_.incoming.c_str());
  auto file = open_file(parts_.incoming, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file) return give_up(file.error().message());
  file_ = *std::move(file);
  missing_ = message->bytes();
  copied_ = *position;
}

void LogFollower::part(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::LogPart>(frame);
  if (!message) return give_up(message.error().message());
  if (message->data().size() > missing_) return give_up("the copy is larger than announced");
  if (auto written = write_all(file_.get(), message->data()); !written) {
    return give_up("cannot write the copy: " + written.error().message());
  }
  missing_ -= message->data().size();
  if (missing_ == 0) install();
}

void LogFollower::install() {
  file_.reset();
  auto result = std::make_shared<Status>();
  parts_.disk.run(
      [this, result] {
        *result = parts_.store.replace_with(parts_.incoming);
        if (*result) *result = parts_.store.write_files();
      },
      [this, result, position = copied_, stream = stream_] {
        if (!*result) return broken_(result->error());
        log_notice("Replaced the database by a copy of the other head's", kv("term", position.term),
                   kv("sequence", position.sequence));
        done(position, stream, *result);
      });
}

// ---- transactions -------------------------------------------------------------------------------

void LogFollower::changes(const proto::InFrame& frame) {
  auto message = proto::parse<wire::LogChanges>(frame);
  const auto position = message ? proto::from_wire(message->position()) : message.error();
  if (!position) return give_up(position.error().message());
  const std::size_t bytes = message->changes().size();
  waiting_bytes_ += bytes;
  if (waiting_bytes_ > kMostWaiting) return give_up("the disk is too slow for the log");
  auto result = std::make_shared<Status>();
  auto shipped = std::make_shared<std::string>(std::move(*message->mutable_changes()));
  auto store = [this, result, shipped, after = *position] {
    *result = parts_.store.apply_shipped(*shipped, after);
    const bool has_files = shipped->find(kFilePrefix) != shipped->npos;
    if (*result && has_files) *result = parts_.store.write_files();
  };
  parts_.disk.run(std::move(store), [this, result, bytes, after = *position, stream = stream_] {
    waiting_bytes_ -= bytes;
    done(after, stream, *result);
  });
}

void LogFollower::done(gang::LogPosition position, std::uint64_t stream, const Status& status) {
  if (!status) {
    if (stream == stream_) give_up("cannot store the log: " + status.error().message());
    return;
  }
  parts_.election.stored(position);
  if (stream != stream_ || !parts_.election.other()) return;
  wire::LogStored stored;
  *stored.mutable_position() = proto::to_wire(position);
  proto::send(*parts_.election.other(), stored);
}

}  // namespace score::head

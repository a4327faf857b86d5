// Records are appended to the log as they come, by plain writes to the kernel's cache; what must be
// on the disk waits for an fsync that all such records of a turn share. Writes of a transaction go
// into the files in one go, between two requests of the loop: they are in the kernel's cache too.
#include "pario/server/transaction_requests.hpp"

#include "base/os/log.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <random>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::uint64_t kMostLog = std::uint64_t{64} << 20;

std::int64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000 + now.tv_nsec / 1'000'000;
}

Transactions::Prepare prepare_of(const Request& request, std::uint64_t token) {
  return {.id = request.number,
          .stages = request.mode,
          .coordinator = static_cast<std::uint16_t>(request.other),
          .is_stable = (request.flags & kStable) != 0,
          .servers = request.servers,
          .token = token};
}

}  // namespace

TransactionRequests::TransactionRequests(const Parts& parts, std::uint16_t server, Finish finish)
    : parts_(parts), finish_(std::move(finish)), transactions_(server, std::random_device()()) {}

int TransactionRequests::open(int directory) {
  const auto replay = [this](LogRecord record) {
    // Perhaps in the kernel's cache only.
    for (const WriteAccess& one : record.part.writes) touched_.insert(one.file);
    transactions_.replay(std::move(record), boot_);
  };
  if (const int error = log_.open(directory, replay)) return error;
  for (const TransactionId id : transactions_.recovered(monotonic_ms())) apply(id);
  run_actions();
  if (error_ != 0) return error_;
  return log_.size() > 0 ? compact() : 0;
}

int TransactionRequests::stamp(const Request& request, std::uint64_t& stamp) const {
  return transactions_.stamp(request.id, request.extents, stamp);
}

void TransactionRequests::run(TransferPtr transfer) {
  const Request& request = transfer->request;
  const std::int64_t now = monotonic_ms();
  if (request.op == Op::StageTransaction || request.op == Op::EndTransaction) {
    if (request.op == Op::EndTransaction) {
      transactions_.end(request.number);
    } else {
      transfer->answer.error = run_stage(*transfer);
    }
    finish_(std::move(transfer));
    return run_actions();
  }
  const TransactionId id = request.number;
  const std::uint64_t token = next_token_++;
  Transfer& waiting = *(waiting_[token] = std::move(transfer));
  switch (waiting.request.op) {
    case Op::PrepareTransaction:
      transactions_.prepare(prepare_of(waiting.request, token), now);
      break;
    case Op::DecideTransaction:
      transactions_.decide(waiting.request.number, token, now);
      break;
    case Op::FinishTransaction:
      transactions_.finish(waiting.request.number, waiting.request.other == 1, token, now);
      break;
    default:
      transactions_.tell_outcome(waiting.request.number, token, now);
  }
  run_actions();
  if (transactions_.part(id) == nullptr) release(id);
}

int TransactionRequests::run_stage(const Transfer& transfer) {
  const Request& request = transfer.request;
  Transactions::Stage stage{request.number, request.mode, {}, {}};
  if (request.data_bytes == 0) {
    for (const Extent& extent : request.extents) {
      stage.reads.push_back({request.id, extent, request.other});
    }
  } else {
    if (const int error = reserve(request)) return error;
    const char* data = transfer.data.get();
    for (const Extent& extent : request.extents) {
      stage.writes.push_back({request.id, extent, std::string(data, extent.length)});
      data += extent.length;
    }
  }
  return transactions_.stage(std::move(stage), monotonic_ms());
}

int TransactionRequests::reserve(const Request& request) {
  std::shared_ptr<DataFile> file;
  int error = parts_.files.get(request.id, false, file);
  if (error == ENOENT) error = parts_.metadata.check_exists(request.id);
  if (error == 0 && !file) error = parts_.files.get(request.id, true, file);
  std::uint64_t reserved = 0;
  if (error == 0) error = parts_.files.reserve(*file, request.extents, reserved);
  if (error == 0) reserved_[request.number] += reserved;
  return error;
}

void TransactionRequests::release(TransactionId id) {
  const auto found = reserved_.find(id);
  if (found == reserved_.end()) return;
  parts_.files.release(found->second);
  reserved_.erase(found);
}

void TransactionRequests::run_actions() {
  for (;;) {
    const std::vector<Action> actions = transactions_.take_actions();
    if (actions.empty()) return;
    for (const Action& action : actions) {
      if (action.after_sync && synced_ < appended_) {
        deferred_.push_back({appended_, action});
      } else {
        run_action(action);
      }
    }
  }
}

void TransactionRequests::run_action(const Action& action) {
  switch (action.kind) {
    case Action::Kind::Append:
      if (error_ == 0) error_ = log_.append(action.record);
      appended_ += action.record.size();
      break;
    case Action::Kind::Apply:
      if (error_ == 0) apply(action.id);
      break;
    case Action::Kind::Reply:
      reply(action);
      break;
    case Action::Kind::Ask:
      ask(action);
      break;
    case Action::Kind::Push:
      push(action);
      break;
  }
}

void TransactionRequests::apply(TransactionId id) {
  const TransactionPart* part = transactions_.part(id);
  if (part == nullptr || !transactions_.must_apply(id)) return;
  release(id);
  for (const WriteAccess& one : part->writes) {
    if (const int error = write(one)) {  // again soon; until then it stays locked
      log_error("cannot write a committed transaction; trying again",
                kv("err", std::string_view(std::strerror(error))));
      return;
    }
  }
  transactions_.applied(id, boot_);
}

// A file that was removed meanwhile is left out.
int TransactionRequests::write(const WriteAccess& one) {
  std::shared_ptr<DataFile> file;
  int error = parts_.files.get(one.file, false, file);
  if (error == ENOENT) {
    if (parts_.metadata.check_exists(one.file) != 0) return 0;
    error = parts_.files.get(one.file, true, file);
  }
  if (error != 0) return error;
  std::string_view left = one.data;
  std::uint64_t offset = one.extent.offset;
  while (!left.empty()) {
    const ssize_t done =
        ::pwrite(file->fd.get(), left.data(), left.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    left.remove_prefix(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  parts_.files.settle(*file, 0);
  touched_.insert(one.file);
  return 0;
}

void TransactionRequests::reply(const Action& action) {
  const auto found = waiting_.find(action.token);
  if (found == waiting_.end()) return;
  TransferPtr transfer = std::move(found->second);
  waiting_.erase(found);
  transfer->answer.error = error_ != 0 ? EIO : action.error;
  transfer->answer.number = static_cast<std::uint64_t>(action.outcome);
  finish_(std::move(transfer));
}

void TransactionRequests::ask(const Action& action) {
  const TransactionId id = action.id;
  parts_.peers.ask(action.server, {.op = Op::TellOutcome, .id = kRootId, .number = id},
                   [this, id](int error, const Reply& reply) {
                     if (error != 0 || reply.number > 2) return;
                     transactions_.told(id, static_cast<Outcome>(reply.number));
                     run_actions();
                   });
}

void TransactionRequests::push(const Action& action) {
  const TransactionId id = action.id;
  const std::uint16_t server = action.server;
  parts_.peers.ask(server, {.op = Op::FinishTransaction, .id = kRootId, .number = id, .other = 1},
                   [this, id, server](int error, const Reply&) {
                     if (error == 0) transactions_.pushed(id, server);
                     run_actions();
                   });
}

void TransactionRequests::tick() {
  transactions_.tick(monotonic_ms());
  run_actions();
  for (auto at = reserved_.begin(); at != reserved_.end();) {
    const auto next = std::next(at);
    if (transactions_.part(at->first) == nullptr) release(at->first);
    at = next;
  }
  if (log_.size() > kMostLog + 2 * compacted_size_ && !is_syncing_ && deferred_.empty() &&
      error_ == 0) {
    error_ = compact();
  }
}

int TransactionRequests::end_turn() {
  if (!deferred_.empty() && !is_syncing_ && error_ == 0) {
    io_uring_prep_fsync(parts_.ring.next(&syncing_), log_.fd(), IORING_FSYNC_DATASYNC);
    is_syncing_ = true;
    syncing_to_ = appended_;
  }
  return error_;
}

void TransactionRequests::synced(int result) {
  is_syncing_ = false;
  if (result < 0 && result != -EINTR) error_ = -result;
  if (result == 0) synced_ = syncing_to_;
  while (!deferred_.empty() && deferred_.front().position <= synced_) {
    const Action action = std::move(deferred_.front().action);
    deferred_.pop_front();
    run_action(action);
  }
  run_actions();
}

// What was applied must be on the disk before the log forgets it. This stops the loop, rarely.
int TransactionRequests::compact() {
  for (const FileId id : touched_) {
    std::shared_ptr<DataFile> file;
    if (parts_.files.get(id, false, file) != 0) continue;
    if (::fdatasync(file->fd.get()) != 0) return errno;
  }
  const int error = log_.replace(transactions_.compacted());
  if (error != 0) return error;
  touched_.clear();
  synced_ = appended_;
  compacted_size_ = log_.size();
  return 0;
}

}  // namespace score::pario

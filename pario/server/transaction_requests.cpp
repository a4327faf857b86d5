// Records are appended to the log as they arrive, by plain writes to the kernel's cache. Records
// that must be on the disk wait for an fsync that all such records of a turn share. All writes of a
// transaction go into the files at once, between two requests of the loop; they are in the kernel's
// cache too.
#include "pario/server/transaction_requests.hpp"

#include "base/os/log.hpp"
#include "pario/client/socket_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::uint64_t kMostLog = std::uint64_t{64} << 20;
constexpr std::int64_t kMostParkedMs = 20'000;  // of a plain change behind a transaction in doubt

Transactions::Prepare prepare_of(const Request& request, std::uint64_t token) {
  return {.id = request.number,
          .stages = request.mode,
          .coordinator = static_cast<std::uint16_t>(request.other),
          .is_stable = (request.flags & kStable) != 0,
          .servers = request.servers,
          .token = token};
}

// Returns the range of each file that the part writes, including the bytes in between.
std::map<FileId, Extent> ranges_of(const TransactionPart& part) {
  std::map<FileId, Extent> ranges;
  for (const WriteAccess& one : part.writes) {
    const auto [place, is_new] = ranges.try_emplace(one.file, one.extent);
    if (is_new) continue;
    Extent& range = place->second;
    const std::uint64_t end =
        std::max(range.offset + range.length, one.extent.offset + one.extent.length);
    range.offset = std::min(range.offset, one.extent.offset);
    range.length = end - range.offset;
  }
  return ranges;
}

}  // namespace

TransactionRequests::TransactionRequests(const Parts& parts, std::uint16_t part, Finish finish)
    : parts_(parts), part_(part), finish_(std::move(finish)) {
  reset(0);
}

// Forgets all state, as in a new process.
void TransactionRequests::reset(int error) {
  ++epoch_;
  transactions_ = std::make_unique<Transactions>(part_, std::random_device()());
  actions_ = {};
  appended_ = 0;
  is_leading_ = false;
  must_admit_ = true;
  for (auto& [token, transfer] : std::exchange(waiting_, {})) {
    transfer->answer.error = error;
    finish_(std::move(transfer));
  }
  for (const auto& [id, applying] : std::exchange(applying_, {})) {
    for (const RangeGate::Ticket ticket : applying.tickets) replica_.gate->leave(ticket);
  }
  while (!reserved_.empty()) release(reserved_.begin()->first);
}

int TransactionRequests::open(int directory) {
  const auto replay = [this](LogRecord record) {
    // The writes may be only in the kernel's cache.
    for (const WriteAccess& one : record.part.writes) touched_.insert(one.file);
    const TransactionPart* part = transactions_->part(record.part.id);
    if (record.kind == LogRecord::Kind::Applied && part != nullptr) unflushed_.applied(*part);
    transactions_->replay(std::move(record), boot_);
  };
  if (const int error = log_.open(directory, replay)) return error;
  if (::fdatasync(log_.fd()) != 0) return errno;
  if (replica_.forward) return 0;
  start_leading();
  if (error_ != 0) return error_;
  return log_.size() > 0 ? compact() : 0;
}

void TransactionRequests::start_leading() {
  if (is_leading_) return;
  is_leading_ = true;
  transactions_->recovered(monotonic_ms());
  run_actions();
}

void TransactionRequests::stop_leading() {
  if (!is_leading_) return;
  reset(EREMCHG);
}

std::vector<std::string> TransactionRequests::begin_forwarding() {
  actions_.set_follower(true);
  return transactions_->records();
}

void TransactionRequests::follower_is_lost() {
  if (!actions_.has_follower()) return;
  actions_.set_follower(false);
  run_actions();
}

void TransactionRequests::follow(TransferPtr transfer) {
  LogRecord record;
  const std::string_view bytes(transfer->data.get(), transfer->request.data_bytes);
  int error = decode(bytes, record) == bytes.size() ? 0 : EINVAL;
  const TransactionId id = record.part.id;
  if (error == 0 && record.kind == LogRecord::Kind::Applied && transactions_->must_apply(id)) {
    error = write_all(*transactions_->part(id));
    if (error == 0) unflushed_.applied(*transactions_->part(id));
  }
  if (error != 0) {
    transfer->answer.error = error;
    return finish_(std::move(transfer));
  }
  record.boot = boot_;  // set in an Applied record: the boot of this system
  std::vector<Action> actions(2);
  actions[0].record = encode(record);
  actions[1].kind = Action::Kind::Reply;
  actions[1].after_sync = record.part.is_stable;
  actions[1].token = next_token_++;
  waiting_[actions[1].token] = std::move(transfer);
  transactions_->replay(std::move(record), boot_);
  actions_.add(std::move(actions));
  run_actions();
}

int TransactionRequests::clear() {
  reset(ESTALE);
  touched_.clear();
  unflushed_.clear();
  return log_.replace("");
}

int TransactionRequests::stamp(const Request& request, std::uint64_t& stamp) {
  return transactions_->stamp(request.id, request.extents, monotonic_ms(), stamp);
}

bool TransactionRequests::is_in_use(FileId file) const {
  return transactions_->is_in_use(file, monotonic_ms());
}

bool TransactionRequests::register_plain(Transfer& transfer) {
  const Request& request = transfer.request;
  const std::vector<Extent> whole{{0, kMaxOffset}};
  const bool is_write = request.op == Op::Write;
  transfer.plain = transactions_->begin_plain(request.id, is_write ? request.extents : whole);
  transfer.transactions = transfer.plain != 0 ? this : nullptr;
  return transfer.plain != 0;
}

bool TransactionRequests::admit(TransferPtr& transfer) {
  if (register_plain(*transfer)) return true;
  parked_.push_back({std::move(transfer), monotonic_ms()});
  return false;
}

std::vector<TransferPtr> TransactionRequests::take_admitted() {
  const bool may_be_free = transactions_->take_unlocked() || std::exchange(must_admit_, false);
  if (may_be_free) {
    for (Parked& parked : std::exchange(parked_, {})) {
      if (register_plain(*parked.transfer)) {
        admitted_.push_back(std::move(parked.transfer));
      } else {
        parked_.push_back(std::move(parked));
      }
    }
  }
  return std::exchange(admitted_, {});
}

void TransactionRequests::end_plain(const Transfer& transfer) {
  transactions_->end_plain(transfer.request.id, transfer.plain);
}

void TransactionRequests::run(TransferPtr transfer) {
  const Request& request = transfer->request;
  const std::int64_t now = monotonic_ms();
  if (request.op == Op::StageTransaction || request.op == Op::EndTransaction) {
    if (request.op == Op::EndTransaction) {
      transactions_->end(request.number);
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
      transactions_->prepare(prepare_of(waiting.request, token), now);
      break;
    case Op::DecideTransaction:
      transactions_->decide(id, token, now);
      break;
    case Op::FinishTransaction:
      transactions_->finish(id, waiting.request.other == 1, token, now);
      break;
    default:
      transactions_->report_outcome(id, token, now);
  }
  run_actions();
  if (transactions_->part(id) == nullptr) release(id);
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
  return transactions_->stage(std::move(stage), monotonic_ms());
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

// Actions that result from an action come after those that are ready, so records keep their order.
void TransactionRequests::run_actions() {
  if (is_running_) return;
  is_running_ = true;
  for (;;) {
    actions_.add(transactions_->take_actions());
    const std::vector<Action> ready = actions_.take();
    if (ready.empty()) break;
    for (const Action& action : ready) run_action(action);
  }
  is_running_ = false;
}

void TransactionRequests::run_action(const Action& action) {
  switch (action.kind) {
    case Action::Kind::Append:
      append(action);
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

// The follower applies a transaction when it receives the record that follows its writes.
void TransactionRequests::append(const Action& action) {
  if (error_ == 0) error_ = log_.append(action.record);
  const std::uint64_t position = ++appended_;
  const auto found = applying_.find(action.id);
  const bool is_applied = found != applying_.end() && found->second.is_written;
  if (!actions_.has_follower()) {
    if (is_applied) end_applying(action.id);
    return;
  }
  replica_.forward(action.record, [=, this, id = action.id, epoch = epoch_](bool has) {
    if (epoch != epoch_) return;
    if (is_applied && !has) note_missed(id);
    if (is_applied) end_applying(id);
    if (has) actions_.delivered(position);
    run_actions();
  });
}

void TransactionRequests::apply(TransactionId id) {
  const TransactionPart* part = transactions_->part(id);
  if (part == nullptr || !transactions_->must_apply(id) || applying_.contains(id)) return;
  release(id);
  Applying& applying = applying_[id];
  for (const WriteAccess& one : part->writes) applying.files.insert(one.file);
  if (!replica_.forward) return entered(id);
  // Each file gets one ticket, and all are reserved at once, so no two tickets wait for each other.
  const std::map<FileId, Extent> ranges = ranges_of(*part);
  applying.missing = ranges.size() + 1;
  for (const auto& [file, range] : ranges) {
    const RangeGate::Ticket ticket = replica_.gate->reserve();
    applying.tickets.push_back(ticket);
    replica_.gate->enter(ticket, file, range, [this, id, epoch = epoch_] {
      if (epoch == epoch_ && --applying_[id].missing == 0) entered(id);
    });
  }
  if (--applying.missing == 0) entered(id);
}

void TransactionRequests::entered(TransactionId id) {
  const TransactionPart* part = transactions_->part(id);
  const int error = part != nullptr ? write_all(*part) : EIO;
  if (error != 0) {  // tried again soon; until then it stays locked
    log_error("Cannot write a committed transaction; retrying",
              kv("err", std::string_view(std::strerror(error))));
    return end_applying(id);
  }
  applying_[id].is_written = true;
  unflushed_.applied(*part);
  if (!actions_.has_follower()) note_missed(id);
  transactions_->applied(id, boot_);
  run_actions();
}

void TransactionRequests::note_missed(TransactionId id) {
  if (!replica_.note_missed) return;
  for (const FileId file : applying_[id].files) replica_.note_missed(file);
}

void TransactionRequests::end_applying(TransactionId id) {
  const auto found = applying_.extract(id);
  if (found.empty()) return;
  for (const RangeGate::Ticket ticket : found.mapped().tickets) replica_.gate->leave(ticket);
}

int TransactionRequests::write_all(const TransactionPart& part) {
  for (const WriteAccess& one : part.writes) {
    if (const int error = write(one)) return error;
  }
  return 0;
}

// A file that was removed in the meantime is left out.
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
  parts_.leaders.ask(action.server, {.op = Op::ReportOutcome, .id = kRootId, .number = id},
                     [this, id, epoch = epoch_](int error, const Reply& reply) {
                       if (epoch != epoch_ || error != 0 || reply.number > 2) return;
                       transactions_->learn(id, static_cast<Outcome>(reply.number));
                       run_actions();
                     });
}

void TransactionRequests::push(const Action& action) {
  const TransactionId id = action.id;
  const std::uint16_t server = action.server;
  parts_.leaders.ask(server, {.op = Op::FinishTransaction, .id = kRootId, .number = id, .other = 1},
                     [this, id, server, epoch = epoch_](int error, const Reply&) {
                       if (epoch != epoch_ || error != 0) return;
                       transactions_->pushed(id, server);
                       run_actions();
                     });
}

void TransactionRequests::tick() {
  const std::int64_t now = monotonic_ms();
  if (is_leading_) {
    transactions_->tick(now);
  } else {
    transactions_->tick_replayed(now);
  }
  run_actions();
  for (auto at = reserved_.begin(); at != reserved_.end();) {
    const auto next = std::next(at);
    if (transactions_->part(at->first) == nullptr) release(at->first);
    at = next;
  }
  while (!parked_.empty() && now - parked_.front().since_ms > kMostParkedMs) {
    parked_.front().transfer->answer.error = EIO;
    finish_(std::move(parked_.front().transfer));
    parked_.pop_front();
  }
  if (log_.size() > kMostLog + 2 * compacted_size_ && !is_syncing_ && error_ == 0) {
    error_ = compact();
  }
}

int TransactionRequests::end_turn() {
  if (!is_syncing_ && error_ == 0 && actions_.waits_for_disk()) {
    io_uring_prep_fsync(parts_.ring.next(&syncing_), log_.fd(), IORING_FSYNC_DATASYNC);
    is_syncing_ = true;
    syncing_epoch_ = epoch_;
    syncing_to_ = actions_.position();
  }
  return error_;
}

void TransactionRequests::synced(int result) {
  is_syncing_ = false;
  if (syncing_epoch_ != epoch_) return;  // it belongs to a log that was replaced
  if (result < 0 && result != -EINTR) error_ = -result;
  if (result == 0) actions_.synced(syncing_to_);
  run_actions();
}

// These records belong to this server's disk; the other replica writes its own.
void TransactionRequests::end_flush(TransferPtr transfer) {
  const std::string records = Unflushed::records(transfer->request.id, transfer->flushed);
  const int error = error_ != 0 ? error_ : log_.append(records);
  if (error != 0) {
    transfer->flushed.clear();
    transfer->answer.error = error;
    return finish_(std::move(transfer));
  }
  auto flush = std::make_unique<Flush>(*this, std::move(transfer));
  flush->log = UniqueFd(::dup(log_.fd()));
  io_uring_prep_fsync(parts_.ring.next(flush.get()), flush->log.get(), IORING_FSYNC_DATASYNC);
  Flush* const key = flush.get();
  flushes_.emplace(key, std::move(flush));
}

void TransactionRequests::flush_done(Flush& flush, int result) {
  if (result == -EINTR || result == -EAGAIN) {
    io_uring_prep_fsync(parts_.ring.next(&flush), flush.log.get(), IORING_FSYNC_DATASYNC);
    return;
  }
  const std::unique_ptr<Flush> owned = std::move(flushes_.extract(&flush).mapped());
  TransferPtr transfer = std::move(owned->transfer);
  const std::vector<TransactionId> ids = std::exchange(transfer->flushed, {});
  if (result < 0) transfer->answer.error = -result;
  if (result >= 0) unflushed_.flushed(transfer->request.id, ids);
  finish_(std::move(transfer));
}

// Applied writes must be on the disk before the log drops them. This stops the loop, rarely.
int TransactionRequests::compact() {
  for (const FileId id : touched_) {
    std::shared_ptr<DataFile> file;
    if (parts_.files.get(id, false, file) != 0) continue;
    if (::fdatasync(file->fd.get()) != 0) return errno;
  }
  const int error = log_.replace(transactions_->compacted());
  if (error != 0) return error;
  touched_.clear();
  unflushed_.clear();
  actions_.synced(actions_.position());
  compacted_size_ = log_.size();
  return 0;
}

}  // namespace score::pario

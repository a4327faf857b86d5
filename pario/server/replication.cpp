// A change is carried out here first. If it succeeds it is forwarded, and answered when the
// follower has it. Changes of names and attributes are forwarded in the order in which they are
// carried out; changes of data that overlap wait for each other at the gate. So both replicas have
// the same order.
#include "pario/server/replication.hpp"

#include "base/os/log.hpp"
#include "pario/core/bytes.hpp"
#include "pario/store/transaction_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::size_t kMostMissed = 100'000;

// Returns true for operations that change the bytes of one file.
bool changes_data(Op op) {
  return op == Op::Write || op == Op::Truncate || op == Op::SetTime || op == Op::Allocate;
}

// Returns true for requests that the leader answers alone. Transactions send their records to the
// follower themselves.
bool is_for_leader(Op op) {
  switch (op) {
    case Op::Lookup:
    case Op::GetAttributes:
    case Op::ReadEntries:
    case Op::Statistics:
    case Op::Gather:
    case Op::Read:
    case Op::GetValue:
    case Op::ListValues:
    case Op::Seek:
    case Op::Hold:
    case Op::ReportChange:
    case Op::SettleTime:
    case Op::Copy:
    case Op::StageTransaction:
    case Op::PrepareTransaction:
    case Op::DecideTransaction:
    case Op::FinishTransaction:
    case Op::ReportOutcome:
    case Op::EndTransaction:
      return true;
    default:
      return false;
  }
}

Extent extent_of(const Request& request) {
  if (request.op != Op::Write) return {0, kMaxOffset};
  std::uint64_t begin = kMaxOffset;
  std::uint64_t end = 0;
  for (const Extent& extent : request.extents) {
    begin = std::min(begin, extent.offset);
    end = std::max(end, extent.offset + extent.length);
  }
  return {begin, end - begin};
}

}  // namespace

std::int64_t wall_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool is_change(Op op) {
  switch (op) {
    case Op::Create:
    case Op::Unlink:
    case Op::Insert:
    case Op::Rename:
    case Op::SetMode:
    case Op::SetTime:
    case Op::SetWide:
    case Op::Remove:
    case Op::SealDirectory:
    case Op::UnsealDirectory:
    case Op::Truncate:
    case Op::Reserve:
    case Op::Write:
    case Op::Sync:
    case Op::ChangeLinks:
    case Op::SetValue:
    case Op::Allocate:
    case Op::SetGroup:
    case Op::MakeFile:
    case Op::Lock:
      return true;
    default:
      return false;
  }
}

Replication::Replication(const Place& place, const Parts& parts, Hooks hooks)
    : place_(place), parts_(parts), hooks_(std::move(hooks)) {
  parts_.transactions.set_replica(
      {[this](std::string record, const std::function<void(bool)>& done) {
         forward_record(std::move(record), done);
       },
       [this](FileId file) { note_missed(file); }, &gate_});
}

Replication::~Replication() = default;

int Replication::open() {
  std::uint64_t packed = 0;
  ReplicaView view;
  int error = parts_.store.get_number("view", packed);
  if (error == 0 && !unpack(packed, view)) return EIO;
  if (error == ENOENT || error == 0) error = parts_.store.get_number("applied", applied_);
  if (error != 0 && error != ENOENT) return error;
  // After a loss of power the replica may lack changes that it has acknowledged.
  std::uint64_t boot = 0;
  error = parts_.store.get_number("boot", boot);
  if (error != 0 && error != ENOENT) return error;
  if (view.mode == ReplicaMode::Following && boot != boot_number()) view.mode = ReplicaMode::Stale;
  replica_ = std::make_unique<Replica>(view, place_.is_first);
  forwarder_ = std::make_unique<Forwarder>(place_.volume, place_.peer, parts_.peers.fd());
  set_capacity();
  return 0;
}

void Replication::run(TransferPtr transfer) {
  switch (transfer->request.op) {
    case Op::Join:
      return join(std::move(transfer));
    case Op::FillBegin:
    case Op::FillTable:
    case Op::FillEnd:
      return fill(std::move(transfer));
    default:
      break;
  }
  if ((transfer->request.flags & kForwarded) != 0) return follow(std::move(transfer));
  lead(std::move(transfer));
}

// --- The leader ---

void Replication::lead(TransferPtr transfer) {
  if (!replica_->serves()) {
    replica_->asked();
    transfer->answer.error = EREMCHG;  // the client tries the other replica
    hooks_.answer(std::move(transfer));
    return run_actions();
  }
  if (!is_change(transfer->request.op)) {
    if (is_for_leader(transfer->request.op)) return hooks_.execute(std::move(transfer));
    transfer->answer.error = EOPNOTSUPP;
    return hooks_.answer(std::move(transfer));
  }
  Request& request = transfer->request;
  request.forwarded.time_ns = wall_ns();
  if (request.op == Op::Create || request.op == Op::MakeFile) {
    transfer->answer.error = parts_.store.make_id(request.forwarded.new_id);
    if (transfer->answer.error != 0) return hooks_.answer(std::move(transfer));
  }
  transfer->replication = this;
  if (!changes_data(request.op)) return start_change(std::move(transfer));
  const auto shared = std::make_shared<TransferPtr>(std::move(transfer));
  Transfer& waiting = **shared;
  waiting.ticket = gate_.reserve();
  gate_.enter(waiting.ticket, request.id, extent_of(request),
              [this, shared] { start_change(std::move(*shared)); });
}

void Replication::start_change(TransferPtr transfer) {
  hooks_.execute(std::move(transfer));
}

void Replication::local_done(TransferPtr transfer) {
  if (transfer->answer.error == 0 && !replica_->forwards()) note_missed(*transfer);
  if (transfer->answer.error != 0 || !replica_->forwards()) return end_change(std::move(transfer));
  Request request = transfer->request;
  if (request.op == Op::Reserve) request.other = transfer->answer.number;  // the chosen offset
  std::shared_ptr<DataFile> file;
  // The file was removed in the meantime; the follower knows.
  if (request.op == Op::Write && parts_.files.get(request.id, false, file) != 0) {
    return end_change(std::move(transfer));
  }
  const char* data = transfer->data.get();
  const std::shared_ptr<TransferPtr> shared = std::make_shared<TransferPtr>(std::move(transfer));
  forward(request, data, shared, [this, shared](int error) { forwarded(shared, error); });
}

void Replication::forwarded(std::shared_ptr<TransferPtr> shared, int error) {
  // ENOENT means that the file was removed there too.
  if (error == ENOENT && changes_data((*shared)->request.op)) error = 0;
  if (error != 0) note_missed(**shared);
  const bool is_refused = error == ESTALE || !replica_->serves();
  if (error != 0 && is_refused && view().mode == ReplicaMode::Leading) {
    doubtful_.push_back(std::move(shared));
    return ask_who_leads();
  }
  if (!is_delivered(error) && view().mode == ReplicaMode::Stale) {
    (*shared)->answer.error = EREMCHG;
  }
  end_change(std::move(*shared));
}

void Replication::ask_who_leads() {
  is_in_doubt_ = true;
  replica_->stood_still();
  probe();
}

// Call this once it is known which of the two serves. A follower that has refused a change lacks
// it.
void Replication::settle_doubtful() {
  const bool is_lost = view().mode == ReplicaMode::Stale;
  if (!is_lost && !replica_->serves()) return;
  if (std::exchange(is_in_doubt_, false) && !is_lost && view().mode == ReplicaMode::Leading) {
    stop_repair();
    replica_->follower_is_lost();
    return run_actions();
  }
  for (const auto& shared : std::exchange(doubtful_, {})) {
    if (is_lost) (*shared)->answer.error = EREMCHG;
    end_change(std::move(*shared));
  }
}

void Replication::note_missed(const Transfer& transfer) {
  const Request& request = transfer.request;
  if (changes_data(request.op) || request.op == Op::Remove) note_missed(request.id);
  Attributes removed;
  if (request.op == Op::Unlink && request.number == 0 &&
      parse_body(transfer.answer.body, removed)) {
    note_missed(removed.id);
  }
}

void Replication::note_missed(FileId file) {
  missed_.insert(file);
  if (missed_.size() <= kMostMissed) return;
  missed_since_ = 0;
  missed_.clear();
}

void Replication::end_change(TransferPtr transfer) {
  const RangeGate::Ticket ticket = transfer->ticket;
  transfer->replication = nullptr;
  hooks_.answer(std::move(transfer));
  if (ticket != 0) gate_.leave(ticket);
}

void Replication::forward(Request request, const char* data, std::shared_ptr<void> keeps,
                          Forwarder::Done done) {
  // The data is in this server's memory, regardless of how it arrived.
  request.flags = static_cast<std::uint16_t>((request.flags & ~kRemote) | kForwarded);
  request.part = place_.part + 1;
  request.forwarded.view = view().number;
  request.forwarded.sequence = ++sequence_;
  forwarder_->send(std::move(request), data, std::move(keeps), std::move(done));
}

void Replication::forward_record(std::string record, const std::function<void(bool)>& done) {
  const auto keeps = std::make_shared<std::string>(std::move(record));
  const Request request{.op = Op::LogTransaction,
                        .id = kRootId,
                        .data_bytes = static_cast<std::uint32_t>(keeps->size())};
  forward(request, keeps->data(), keeps, [this, done](int error) {
    done(error == 0);
    if (error == 0) return;
    const bool is_refused = error == ESTALE || !replica_->serves();
    if (is_refused && view().mode == ReplicaMode::Leading) return ask_who_leads();
    static_cast<void>(is_delivered(error));
  });
}

// Handles the result of forwarding. If the follower is lost, this replica continues alone with all
// data, and the result is false.
bool Replication::is_delivered(int error) {
  if (error == 0) return true;
  if (replica_->forwards()) {
    log_warning("Lost the other replica", kv("part", place_.part), kv("server", place_.peer),
                kv("err", std::string_view(std::strerror(error))));
  }
  stop_repair();
  replica_->follower_is_lost();
  run_actions();
  return false;
}

void Replication::tick() {
  replica_->tick();
  run_actions();
}

void Replication::stood_still() {
  replica_->stood_still();
  run_actions();
}

void Replication::run_actions() {
  for (auto actions = replica_->take_actions(); !actions.empty();
       actions = replica_->take_actions()) {
    for (const Replica::Action action : actions) {
      if (action == Replica::Action::Store) store_view();
      settle_transactions();
      if (action == Replica::Action::Probe) probe();
      if (action == Replica::Action::Repair) start_repair();
    }
  }
  settle_transactions();
  settle_doubtful();
}

// This is called before the other replica is filled, because filling begins with the state of the
// transactions here.
void Replication::settle_transactions() {
  if (replica_->serves()) {
    parts_.transactions.start_leading();
    if (!replica_->forwards()) parts_.transactions.follower_is_lost();
  } else if (view().mode != ReplicaMode::Leading) {
    parts_.transactions.stop_leading();
  }
}

// The leader decides how much space is left; a follower's file system may count slightly
// differently.
void Replication::set_capacity() {
  const bool leads = view().mode == ReplicaMode::Leading || view().mode == ReplicaMode::Alone;
  const std::uint64_t slack = place_.capacity / 16 + (std::uint64_t{64} << 20);
  parts_.files.set_capacity(leads ? place_.capacity : place_.capacity + slack);
}

void Replication::store_view() {
  set_capacity();
  int error = parts_.store.put_number("view", pack(view()));
  if (error == 0) error = parts_.store.put_number("boot", boot_number());
  if (error == 0) error = parts_.store.commit();
  if (error == 0 && ::fdatasync(parts_.store.fd()) != 0) error = errno;
  if (error != 0) fault_ = error;
  log_notice("Replica changed state", kv("part", place_.part), kv("view", view().number),
             kv("mode", static_cast<unsigned>(view().mode)));
}

void Replication::probe() {
  if (is_probing_) return;
  is_probing_ = true;
  const Request request{
      .op = Op::Join, .id = kRootId, .part = place_.part + 1, .number = pack(view())};
  parts_.peers.ask(place_.peer, request, [this](int error, const Reply& reply) {
    is_probing_ = false;
    ReplicaView peer;
    if (error == 0 && unpack(reply.number, peer)) {
      peer_ = peer;
      replica_->peer_is(peer);
    } else {
      replica_->peer_is_gone();
    }
    run_actions();
  });
}

void Replication::join(TransferPtr transfer) {
  ReplicaView peer;
  if (unpack(transfer->request.number, peer)) {
    peer_ = peer;
    replica_->peer_is(peer);
  } else {
    transfer->answer.error = EINVAL;
  }
  run_actions();
  transfer->answer.number = pack(view());
  hooks_.answer(std::move(transfer));
}

// --- The follower ---

void Replication::follow(TransferPtr transfer) {
  const Request& request = transfer->request;
  const std::uint64_t number = request.forwarded.view;
  const bool follows = is_filling_ ? number == filling_view_ : replica_->follows(number);
  if (follows && request.op == Op::LogTransaction) {
    return parts_.transactions.follow(std::move(transfer));
  }
  if (!follows || !is_change(request.op)) {
    transfer->answer.error = ESTALE;
    return hooks_.answer(std::move(transfer));
  }
  if (request.op == Op::Write || request.op == Op::Sync) {
    return hooks_.execute(std::move(transfer));
  }
  follow_metadata(*transfer);
  hooks_.answer(std::move(transfer));
}

// The leader may have reconnected. Changes that were carried out are not repeated.
void Replication::follow_metadata(Transfer& transfer) {
  const std::uint64_t sequence = transfer.request.forwarded.sequence;
  if (sequence <= applied_) return;
  parts_.metadata.run(transfer, transfer.request.forwarded.time_ns);
  if (transfer.answer.error != 0) return;
  transfer.answer.error = parts_.store.put_number("applied", sequence);
  applied_ = sequence;
}

void Replication::fill(TransferPtr transfer) {
  const Request& request = transfer->request;
  Answer& answer = transfer->answer;
  if (request.op == Op::FillBegin) {
    answer.error = begin_filling(request.number);
  } else if (!is_filling_) {
    answer.error = ESTALE;
  } else if (request.op == Op::FillTable && request.mode == kDroppedFiles) {
    answer.error = drop_files({transfer->data.get(), request.data_bytes});
  } else if (request.op == Op::FillTable) {
    answer.error = parts_.store.load(request.mode, {transfer->data.get(), request.data_bytes});
  } else {
    answer.error = end_filling(request.number);
  }
  hooks_.answer(std::move(transfer));
}

int Replication::begin_filling(std::uint64_t packed) {
  const std::uint64_t number = packed & ~kQuick;
  if (replica_->serves() && view().number >= number) return ESTALE;
  replica_->begin_filling();
  run_actions();
  is_filling_ = true;
  filling_view_ = number;
  applied_ = 0;
  if (const int error = parts_.store.clear()) return error;
  if (const int error = parts_.transactions.clear()) return error;
  if ((packed & kQuick) == 0) {
    if (const int error = parts_.files.clear()) return error;
  }
  store_view();
  return fault_;
}

int Replication::drop_files(std::string_view ids) {
  Cursor cursor{ids};
  while (cursor.ok && !cursor.left.empty()) {
    FileId id = 0;
    cursor.take(id);
    const int error = cursor.ok ? parts_.files.remove(id) : EINVAL;
    if (error != 0 && error != ENOENT) return error;
  }
  return 0;
}

int Replication::end_filling(std::uint64_t number) {
  is_filling_ = false;
  if (const int error = parts_.store.reload()) return error;
  replica_->filled(number);
  run_actions();
  return fault_;
}

}  // namespace score::pario

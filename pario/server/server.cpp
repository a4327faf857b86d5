// The server has one thread. A turn takes the available results, runs requests on names and
// attributes at once and starts those on data. At its end the store is committed, and only then are
// the answers sent. In this way many requests share a commit.
#include "pario/server/server.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr unsigned kRingEntries = 1'024;

// A client that uses the number of a file that is gone must look its name up again.
int error_of(const Request& request, int error) {
  if (error != ENOENT || (request.flags & kForwarded) != 0) return error;
  switch (request.op) {
    case Op::GetAttributes:
    case Op::SetMode:
    case Op::SetTime:
    case Op::SetWide:
    case Op::Truncate:
    case Op::Read:
    case Op::Write:
    case Op::Sync:
    case Op::Reserve:
    case Op::ChangeLinks:
    case Op::GetValue:
    case Op::SetValue:
    case Op::ListValues:
    case Op::Allocate:
    case Op::Seek:
    case Op::SetGroup:
    case Op::Lock:
      return ESTALE;
    default:
      return error;
  }
}

}  // namespace

int Turn::commit(Parts& parts) {
  if (parts.own().store->has_changes()) ++commits_;
  const int error = parts.commit();
  if (error != 0) {
    log_error("Cannot store metadata", kv("err", std::string_view(std::strerror(error))));
  }
  for (TransferPtr& transfer : std::exchange(syncs_, {})) {
    transfer->answer.number = commits_;
    const Part& part = parts.of(transfer->request);
    transfer->flushed = part.transactions->begin_flush(transfer->request.id);
    const bool is_on_disk = !parts.has_copy() && synced_ >= commits_;
    part.data->start_sync(std::move(transfer), is_on_disk ? -1 : part.store->fd());
  }
  return error;
}

// Replies can make room for more requests, which are answered in the next turn, or at once.
void Turn::reply(int error, bool has_copy) {
  for (TransferPtr& transfer : std::exchange(answered_, {})) {
    const Op op = transfer->request.op;
    const bool is_data = op == Op::Read || op == Op::Write;
    transfer->answer.error = error_of(transfer->request, transfer->answer.error);
    if (error != 0 && !is_data) transfer->answer.error = error;
    if (op == Op::Sync && transfer->answer.error == 0 && !has_copy) {
      synced_ = std::max(synced_, transfer->answer.number);
    }
    ++replied_;
    if (transfer->transactions != nullptr) transfer->transactions->end_plain(*transfer);
    Connection& connection = *transfer->connection;
    connection.reply(std::move(transfer));
  }
}

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      parts_(options_, ring_,
             {[this](TransferPtr transfer) { execute_here(std::move(transfer)); },
              [this](TransferPtr transfer) { answer(std::move(transfer)); }},
             [this](TransferPtr transfer) { execute(std::move(transfer)); }),
      clients_({options_.volume.key, options_.volume.name, options_.server}, buffers_, ring_,
               {[this](TransferPtr transfer) { execute(std::move(transfer)); },
                [this](Connection& connection) {
                  requests_.leave(connection);
                  parts_.leave(connection);
                }}),
      requests_(parts_.own(), [this](TransferPtr transfer) { turn_.answer(std::move(transfer)); }) {
}

int Server::start(std::string& message) {
  if (const int error = parts_.open(message)) return error;
  if (const int error = ring_.open(kRingEntries)) {
    log_notice("Uses threads, because io_uring is refused",
               kv("err", std::string_view(std::strerror(error))));
  }
  const ServerAddress& address = options_.volume.servers[options_.server];
  if (const int error = clients_.listen(address, std::move(options_.listener), message)) {
    return error;
  }
  return parts_.start(message);
}

int Server::run() {
  tick();
  parts_.wait_for_peers();
  while (!is_stopped_ && fault_ == 0) {
    if (const int error = ring_.turn(clients_.sessions().timeout_us())) return error;
    parts_.watch_time();
    clients_.sessions().wake_due();
    end_turn();
  }
  if (fault_ != 0) return fault_;
  return parts_.own().store->commit();
}

void Server::tick(int) {
  if (must_remove_) is_stopped_ = true;
  clients_.tick();
  const std::int64_t expires = options_.volume.expires_s;
  if (expires != 0 && wall_ns() / 1'000'000'000 >= expires && !must_remove_) {
    log_notice("Volume expired", kv("volume", options_.volume.name));
    must_remove_ = true;
    is_stopped_ = true;
  }
  parts_.tick();
  requests_.tick();
  static __kernel_timespec second{1, 0};
  io_uring_prep_timeout(ring_.next(&tick_), &second, 0, 0);
}

void Server::execute(TransferPtr transfer) {
  Request& request = transfer->request;
  if (request.part == 0) request.part = options_.server + 1;
  if (!parts_.serves(request)) {
    transfer->answer.error = EINVAL;
    return turn_.answer(std::move(transfer));
  }
  if (request.op == Op::Destroy) {  // the server ends after the reply
    log_notice("Volume destroyed", kv("volume", options_.volume.name));
    must_remove_ = true;
    return turn_.answer(std::move(transfer));
  }
  const bool changes_bytes =
      request.op == Op::Write || request.op == Op::Truncate || request.op == Op::Allocate;
  const bool is_plain = changes_bytes && (request.flags & kForwarded) == 0;
  if (is_plain && !parts_.of(request).transactions->admit(transfer)) return;
  parts_.run(std::move(transfer));
}

void Server::answer(TransferPtr transfer) {
  const bool must_report = transfer->touched != decltype(transfer->touched){};
  if (must_report && transfer->answer.error == 0) return parts_.report(std::move(transfer));
  turn_.answer(std::move(transfer));
}

void Server::execute_here(TransferPtr transfer) {
  Part& part = parts_.of(transfer->request);
  part.watch_view();
  switch (transfer->request.op) {
    case Op::Read:
      return read(std::move(transfer));
    case Op::Write:
      return part.data->start(std::move(transfer));
    case Op::Sync:
      return turn_.sync(std::move(transfer));
    case Op::Statistics:
      statistics(*transfer);
      break;
    case Op::StageTransaction:
    case Op::PrepareTransaction:
    case Op::DecideTransaction:
    case Op::FinishTransaction:
    case Op::ReportOutcome:
    case Op::EndTransaction:
      return part.transactions->run(std::move(transfer));
    case Op::Move:
      part.metadata->run(*transfer, wall_ns());
      return parts_.complete_move(std::move(transfer));
    case Op::OpenData:
      transfer->answer.error = requests_.describe_data(transfer->answer);
      break;
    case Op::Lease:
      transfer->answer.error = requests_.lease(*transfer);
      break;
    case Op::Copy:
      return parts_.copy(std::move(transfer));
    case Op::Gather:
      return requests_.gather(std::move(transfer));
    case Op::Hold:
    case Op::Lock:
      return lock(std::move(transfer));
    case Op::OpenChannel:
      transfer->connection->open_session(*transfer);
      break;
    case Op::GetAttributes:
      part.reports->asked(transfer->request.id);
      [[fallthrough]];
    default:
      const std::int64_t chosen = transfer->request.forwarded.time_ns;
      part.metadata->run(*transfer, chosen != 0 ? chosen : wall_ns());
  }
  parts_.finish(std::move(transfer));
}

void Server::read(TransferPtr transfer) {
  const Part& part = parts_.of(transfer->request);
  if ((transfer->request.flags & kStamped) != 0) {
    std::uint64_t stamp = 0;
    int error = part.transactions->stamp(transfer->request, stamp);
    // A client writes the file directly, for a second or two; it gets no new lease.
    if (error == 0 && requests_.has_direct_writer(transfer->request.id)) error = EAGAIN;
    transfer->answer.error = error;
    if (error != 0) return turn_.answer(std::move(transfer));
    put(transfer->answer.body, stamp);
  }
  part.data->start(std::move(transfer));
}

void Server::lock(TransferPtr transfer) {
  const Part& part = parts_.of(transfer->request);
  const std::int64_t chosen = transfer->request.forwarded.time_ns;
  const bool is_forwarded = (transfer->request.flags & kForwarded) != 0;
  const std::int64_t now_ms = monotonic_us() / 1'000;
  if (!is_forwarded) transfer->answer.error = part.locks->note(*transfer, now_ms);
  if (transfer->answer.error == 0) {
    part.metadata->run(*transfer, chosen != 0 ? chosen : wall_ns());
  }
  if (transfer->request.op == Op::Lock && !is_forwarded) {
    if (part.locks->must_wait(*transfer, now_ms)) return part.locks->park(std::move(transfer));
    part.locks->answered(*transfer);
  }
  parts_.finish(std::move(transfer));
}

void Server::statistics(Transfer& transfer) {
  const Part& part = parts_.of(transfer.request);
  requests_.count_space();
  Statistics counts = clients_.counts();
  counts.capacity = part.files.quota().capacity();
  counts.used = part.files.quota().used();
  counts.files = part.store->count() - part.metadata->uses().kept_count();
  counts.bytes_read = part.data->bytes_read();
  counts.bytes_written = part.data->bytes_written() + requests_.written_directly();
  counts.queue = counts.requests > turn_.replied() ? counts.requests - turn_.replied() - 1 : 0;
  put(transfer.answer.body, counts);
}

void Server::end_turn() {
  parts_.run_admitted();
  const int error = turn_.commit(parts_);
  fault_ = parts_.end_turn();
  turn_.reply(error, parts_.has_copy());
  clients_.end_turn();
  if (!turn_.is_empty()) end_turn();
}

void Server::remove_all() {
  for (const char* name : {"metadata", "data", "copy", "transactions", "transactions.new", "log"}) {
    std::error_code error;
    std::filesystem::remove_all(options_.directory + "/" + name, error);
    if (error)
      log_error("Cannot remove data of the volume", kv("name", std::string_view(name)),
                kv("err", error.message()));
  }
  ::rmdir(options_.directory.c_str());  // the directory may have existed before
}

}  // namespace score::pario

// This file has the services for clients besides names and data: ranks that meet, direct access to
// data, and sessions over PM.
#include "pario/server/server.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr std::size_t kMostSessions = 256;  // 0.4 to 1.2 MB and two descriptors each

}  // namespace

void Server::gather(TransferPtr transfer) {
  const Request& request = transfer->request;
  const Gathered part = unpack_gathered(request.mode, request.other);
  const RankBarriers::Join join{
      {request.number, part.sequence}, part.rank, part.size, static_cast<int>(part.error)};
  const std::uint64_t token = ++last_token_;
  transfer->connection->park(1);
  parked_.emplace(token, std::move(transfer));
  end_parked(rank_barriers_.join(join, token, monotonic_us() / 1'000));
}

void Server::end_parked(const std::vector<RankBarriers::Answer>& answers) {
  for (const RankBarriers::Answer& answer : answers) {
    auto parked = parked_.extract(answer.token);
    TransferPtr transfer = std::move(parked.mapped());
    transfer->connection->park(-1);
    transfer->answer.error = answer.error;
    answered_.push_back(std::move(transfer));
  }
}

int Server::describe_data(Answer& answer) const {
  struct stat status {};

  if (::fstat(files_.directory(), &status) != 0) return errno;
  put(answer.body,
      DataPlace{static_cast<std::uint32_t>(::getpid()),
                static_cast<std::uint32_t>(files_.directory()), status.st_dev, status.st_ino});
  return 0;
}

int Server::lease(const Transfer& transfer) {
  const Request& request = transfer.request;
  // Transactions must be informed of changes.
  if (transactions_->is_in_use(request.id)) return EBUSY;
  std::shared_ptr<DataFile> file;
  int error = files_.get(request.id, false, file);
  if (error == ENOENT) error = metadata_->check_exists(request.id);
  if (error == 0 && !file) error = files_.get(request.id, true, file);
  if (error != 0) return error;
  written_directly_ += request.other;
  transactions_->file_changed(request.id);
  return leases_.take(transfer.connection, std::move(file), request.number, monotonic_us() / 1'000);
}

// Returns true if there is a direct writer. It has a lease, or, if it was stopped in the middle of
// a write, a lock of the file.
bool Server::has_direct_writer(FileId id) {
  if (leases_.has(id)) return true;
  std::shared_ptr<DataFile> file;
  if (files_.get(id, false, file) != 0) return false;
  if (::flock(file->fd.get(), LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  ::flock(file->fd.get(), LOCK_UN);
  return false;
}

// A rank has disconnected: the ranks that wait with it are informed.
void Server::closed(Connection& connection) {
  leases_.leave(&connection);
  std::vector<std::uint64_t> tokens;
  for (const auto& [token, transfer] : parked_) {
    if (transfer->connection == &connection) tokens.push_back(token);
  }
  for (const std::uint64_t token : tokens) {
    end_parked(rank_barriers_.leave(token, monotonic_us() / 1'000));
  }
}

void Server::wake(Connection& connection) {
  if (std::ranges::find(woken_, &connection) == woken_.end()) woken_.push_back(&connection);
}

bool Server::admit_session(Connection& connection) {
  if (std::ranges::find(sessions_, &connection) != sessions_.end()) return true;
  if (sessions_.size() == kMostSessions) return false;
  sessions_.push_back(&connection);
  return true;
}

void Server::fell_back(int error, const std::string& peer) {
  ++counts_.tcp_fallbacks;
  if (!limiter_.allow(monotonic_now())) return;
  log_warning("Client cannot use PM; its data goes by TCP", kv("peer", peer),
              kv("err", std::string_view(std::strerror(error))),
              kv("suppressed", limiter_.take_suppressed()));
}

void Server::run_sessions() {
  for (Connection* connection : std::exchange(woken_, {})) connection->run_session();
}

// Returns the time until a session has work even if nothing arrives; less than 0: for ever.
std::int64_t Server::timeout_us() const {
  if (!woken_.empty()) return 0;
  std::int64_t first = -1;
  for (const Connection* connection : sessions_) {
    const std::int64_t due = connection->session_due_us();
    if (due >= 0 && (first < 0 || due < first)) first = due;
  }
  return first < 0 ? -1 : std::max<std::int64_t>(first - monotonic_us(), 0);
}

void Server::wake_due() {
  std::int64_t now = -1;
  for (Connection* connection : sessions_) {
    const std::int64_t due = connection->session_due_us();
    if (due < 0) continue;
    if (now < 0) now = monotonic_us();
    if (due <= now) wake(*connection);
  }
}

}  // namespace score::pario

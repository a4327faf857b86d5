#include "pario/server/client_requests.hpp"

#include <cerrno>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr std::uint64_t kMostPart = 16;  // of the free space, for a lease of more than some writes

}  // namespace

void ClientRequests::gather(TransferPtr transfer) {
  const Request& request = transfer->request;
  const Gathered part = unpack_gathered(request.mode, request.other);
  const RankBarriers::Join join{
      {request.number, part.sequence}, part.rank, part.size, static_cast<int>(part.error)};
  const std::uint64_t token = ++last_token_;
  transfer->connection->park(1);
  parked_.emplace(token, std::move(transfer));
  end_parked(rank_barriers_.join(join, token, monotonic_us() / 1'000));
}

void ClientRequests::end_parked(const std::vector<RankBarriers::Answer>& answers) {
  for (const RankBarriers::Answer& answer : answers) {
    auto parked = parked_.extract(answer.token);
    TransferPtr transfer = std::move(parked.mapped());
    transfer->connection->park(-1);
    transfer->answer.error = answer.error;
    finish_(std::move(transfer));
  }
}

void ClientRequests::leave(Connection& connection) {
  leases_.leave(&connection);
  std::vector<std::uint64_t> tokens;
  for (const auto& [token, transfer] : parked_) {
    if (transfer->connection == &connection) tokens.push_back(token);
  }
  for (const std::uint64_t token : tokens) {
    end_parked(rank_barriers_.leave(token, monotonic_us() / 1'000));
  }
}

int ClientRequests::describe_data(Answer& answer) const {
  struct stat status {};

  if (::fstat(part_.files.directory(), &status) != 0) return errno;
  put(answer.body,
      DataPlace{static_cast<std::uint32_t>(::getpid()),
                static_cast<std::uint32_t>(part_.files.directory()), status.st_dev, status.st_ino});
  return 0;
}

int ClientRequests::lease(const Transfer& transfer) {
  const Request& request = transfer.request;
  // Transactions must be informed of changes.
  if (part_.transactions->is_in_use(request.id)) return EBUSY;
  std::shared_ptr<DataFile> file;
  int error = part_.files.get(request.id, false, file);
  if (error == ENOENT) error = part_.metadata->check_exists(request.id);
  if (error == 0 && !file) error = part_.files.get(request.id, true, file);
  if (error != 0) return error;
  written_directly_ += request.other;
  part_.transactions->file_changed(request.id);
  // The holders of leases must not exclude everyone else; the client then asks for less.
  const bool is_large = request.number > 2 * most_space(kMaxDataBytes);
  if (is_large && request.number > part_.files.quota().free() / kMostPart) return ENOSPC;
  return leases_.take(transfer.connection, std::move(file), request.number, monotonic_us() / 1'000);
}

bool ClientRequests::has_direct_writer(FileId id) {
  if (leases_.has(id)) return true;
  std::shared_ptr<DataFile> file;
  if (part_.files.get(id, false, file) != 0) return false;
  if (::flock(file->fd.get(), LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  ::flock(file->fd.get(), LOCK_UN);
  return false;
}

void ClientRequests::tick() {
  leases_.tick(monotonic_us() / 1'000);
  end_parked(rank_barriers_.tick(monotonic_us() / 1'000));
}

}  // namespace score::pario

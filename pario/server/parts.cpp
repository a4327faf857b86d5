#include "pario/server/parts.hpp"

#include "pario/client/socket_calls.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

// A client repeats a request for 20 s. A process that was stopped in the meantime repeats it when
// it continues.
constexpr std::int64_t kKeepAnswersNs = std::int64_t{3'600} * 1'000'000'000;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

}  // namespace

int Part::open(const VolumeDescription& volume, const std::function<bool(FileId)>& is_left_over,
               std::string& message) {
  if (::mkdirat(directory.get(), "metadata", 0700) != 0 && errno != EEXIST) {
    message = path + "/metadata: " + std::strerror(errno);
    return errno;
  }
  const auto servers = static_cast<std::uint32_t>(volume.servers.size());
  const Store::Identity identity{volume.name, index, servers, volume.stripe};
  if (const int error = Store::open(path + "/metadata", identity, store, message)) {
    message = path + ": " + message;
    return error;
  }
  const int error = files.open(directory.get(), is_left_over);
  if (error != 0) message = path + "/data: " + std::strerror(error);
  return error;
}

void Part::prepare(std::uint32_t servers, Ring& ring, Peers& leaders,
                   const DataRequests::Finish& finish) {
  metadata = std::make_unique<Metadata>(Metadata::Place{index, servers}, *store, files,
                                        static_cast<std::uint64_t>(wall_ns()));
  data = std::make_unique<DataRequests>(ring, files, *metadata, finish);
  purges =
      std::make_unique<Purges>(Purges::Place{index, servers}, metadata->uses(), *store, leaders);
  locks = std::make_unique<LockClients>(index, *store, leaders);
  const TransactionRequests::Parts parts{ring, files, *metadata, leaders};
  transactions =
      std::make_unique<TransactionRequests>(parts, static_cast<std::uint16_t>(index), finish);
}

void Part::watch_view() {
  if (!replica || replica->view().number == seen_view) return;
  seen_view = replica->view().number;
  metadata->directories().clear();
  reports->clear();
}

void Part::remove_unlinked(int error) {
  for (const FileId id : metadata->take_removals()) {
    transactions->file_changed(id);
    if (error == 0) static_cast<void>(files.remove(id));
  }
}

std::vector<TransferPtr> Part::tick() {
  transactions->tick();
  // The next change reports an error.
  static_cast<void>(store->forget_answers(wall_ns() - kKeepAnswersNs));
  if (replica) replica->tick();
  const bool leads = !replica || replica->leads();
  purges->tick(leads, wall_ns());
  return locks->tick(leads, monotonic_ms());
}

Parts::Parts(const ServerOptions& options, Ring& ring, Replication::Hooks hooks,
             Copies::Arrived arrived)
    : options_(options),
      ring_(ring),
      hooks_(std::move(hooks)),
      arrived_(std::move(arrived)),
      servers_(static_cast<std::uint32_t>(options.volume.servers.size())),
      own_(options.server, options.directory, options.capacity) {}

Parts::~Parts() = default;

int Parts::open(std::string& message) {
  own_.directory = UniqueFd(::open(own_.path.c_str(), kDirectoryFlags));
  if (!own_.directory) {
    message = own_.path + ": " + std::strerror(errno);
    return errno;
  }
  if (::flock(own_.directory.get(), LOCK_EX | LOCK_NB) != 0) {
    message = own_.path + ": another scored-pario uses this directory";
    return EBUSY;
  }
  // A file is left over if the server was killed between the removal of its attributes and that of
  // its data.
  const auto is_left_over = [this](FileId id) {
    Inode inode;
    return home_of(id) == own_.index && own_.store->get(id, inode) == ENOENT;
  };
  const int error = own_.open(options_.volume, is_left_over, message);
  if (own_.store) static_cast<void>(own_.store->commit());
  return error;
}

int Parts::start(std::string& message) {
  const bool has_replicas = options_.volume.replicas > 1;
  const auto finish = [this](TransferPtr transfer) { this->finish(std::move(transfer)); };
  peers_ = std::make_unique<Peers>(options_.volume);
  if (has_replicas) leaders_ = std::make_unique<Peers>(options_.volume, peers_.get());
  quick_ = std::make_unique<Peers>(options_.volume, peers_.get());
  const auto answer = [this](TransferPtr transfer) { hooks_.answer(std::move(transfer)); };
  copies_ = std::make_unique<Copies>(*quick_, Copies::Hooks{answer, arrived_});
  own_.reports = std::make_unique<DirectoryReports>(*quick_, answer);
  own_.prepare(servers_, ring_, has_replicas ? *leaders_ : *peers_, finish);
  moves_ = std::make_unique<Moves>(*own_.store, *peers_, servers_, finish);
  int error = moves_->open();
  if (error == 0 && has_replicas) {
    if (const int failed = open_copy(message)) return failed;
    copy_->reports = std::make_unique<DirectoryReports>(*quick_, answer);
    copy_->prepare(servers_, ring_, *leaders_, finish);
    return open_replicas(message);
  }
  if (error == 0) error = own_.transactions->open(own_.directory.get());
  if (error != 0) message = own_.path + "/transactions: " + std::strerror(error);
  return error;
}

// The copy is in a directory below that of this server.
int Parts::open_copy(std::string& message) {
  const std::uint32_t previous = (options_.server + servers_ - 1) % servers_;
  copy_ = std::make_unique<Part>(previous, own_.path + "/copy", options_.capacity);
  if (::mkdirat(own_.directory.get(), "copy", 0700) == 0 || errno == EEXIST) {
    copy_->directory =
        UniqueFd(::openat(own_.directory.get(), "copy", kDirectoryFlags | O_NOFOLLOW));
  }
  if (!copy_->directory) {
    message = copy_->path + ": " + std::strerror(errno);
    return errno;
  }
  const auto is_left_over = [](FileId) { return false; };
  if (const int error = copy_->open(options_.volume, is_left_over, message)) return error;
  const int error = copy_->store->commit();
  if (error != 0) message = copy_->path + ": " + std::strerror(error);
  return error;
}

int Parts::open_replicas(std::string& message) {
  const std::uint32_t next = copy_server(options_.server, servers_);
  const auto make = [this](Part& part, std::uint32_t peer, bool is_first) {
    part.replica = std::make_unique<Replication>(
        Replication::Place{options_.volume, part.index, peer, is_first, options_.capacity},
        Replication::Parts{*part.store, part.files, *part.metadata, *peers_, *part.transactions},
        hooks_);
  };
  make(own_, next, true);
  make(*copy_, copy_->index, false);
  int error = own_.replica->open();
  if (error == 0) error = copy_->replica->open();
  if (error == 0) error = own_.transactions->open(own_.directory.get());
  if (error == 0) error = copy_->transactions->open(copy_->directory.get());
  if (error != 0) message = own_.path + ": replicas: " + std::strerror(error);
  return error;
}

bool Parts::serves(const Request& request) {
  return home_of(request.id) < servers_ && request.part == of(request).index + 1 &&
         (copy_ || (request.flags & kForwarded) == 0);
}

Part& Parts::of(const Request& request) {
  return copy_ && request.part == copy_->index + 1 ? *copy_ : own_;
}

void Parts::run(TransferPtr transfer) {
  const Part& part = of(transfer->request);
  const bool is_of_part = transfer->request.op != Op::OpenChannel;
  if (!part.replica || !is_of_part) return hooks_.execute(std::move(transfer));
  part.replica->run(std::move(transfer));
}

void Parts::copy(TransferPtr transfer) {
  Part& part = of(transfer->request);
  if (transfer->request.mode >= servers_) {
    transfer->answer.error = EINVAL;
    return finish(std::move(transfer));
  }
  copies_->start(std::move(transfer), part.index, *part.data);
}

void Parts::report(TransferPtr transfer) {
  of(transfer->request).reports->run(std::move(transfer));
}

void Parts::finish(TransferPtr transfer) {
  if (transfer->copy_to != 0) return copies_->read_done(std::move(transfer));
  if (!transfer->flushed.empty() && transfer->answer.error == 0) {
    TransactionRequests& transactions = *of(transfer->request).transactions;
    return transactions.end_flush(std::move(transfer));
  }
  if (transfer->replication != nullptr) {
    Replication& replication = *transfer->replication;
    return replication.local_done(std::move(transfer));
  }
  hooks_.answer(std::move(transfer));
}

void Parts::run_admitted() {
  for (TransferPtr& transfer : own_.transactions->take_admitted()) run(std::move(transfer));
  for (TransferPtr& transfer : own_.locks->take_ready()) run(std::move(transfer));
  if (!copy_) return;
  for (TransferPtr& transfer : copy_->transactions->take_admitted()) run(std::move(transfer));
  for (TransferPtr& transfer : copy_->locks->take_ready()) run(std::move(transfer));
}

void Parts::leave(const Connection& connection) {
  const std::int64_t now_ms = monotonic_ms();
  for (TransferPtr& one : own_.locks->leave(connection, now_ms)) finish(std::move(one));
  if (!copy_) return;
  for (TransferPtr& one : copy_->locks->leave(connection, now_ms)) finish(std::move(one));
}

int Parts::commit() {
  const int error = own_.store->commit();
  moves_->committed(error);
  own_.remove_unlinked(error);
  if (!copy_) return error;
  const int failed = copy_->store->commit();
  copy_->remove_unlinked(failed);
  return error != 0 ? error : failed;
}

int Parts::end_turn() {
  int fault = own_.transactions->end_turn();
  if (!copy_) return fault;
  if (fault == 0) fault = copy_->transactions->end_turn();
  if (fault == 0) fault = own_.replica->fault();
  return fault != 0 ? fault : copy_->replica->fault();
}

void Parts::tick() {
  for (TransferPtr& transfer : own_.tick()) finish(std::move(transfer));
  if (copy_) {
    for (TransferPtr& transfer : copy_->tick()) finish(std::move(transfer));
  }
  moves_->tick();
}

// If this process was stopped, perhaps with its whole node, the other replica may have taken over
// in the meantime.
void Parts::watch_time() {
  constexpr std::int64_t kStandstillMs = 5'000;
  const std::int64_t now_ms = monotonic_ms();
  if (last_turn_ms_ != 0 && now_ms - last_turn_ms_ > kStandstillMs && copy_) {
    own_.replica->stood_still();
    copy_->replica->stood_still();
  }
  last_turn_ms_ = now_ms;
}

void Parts::wait_for_peers() {
  io_uring_prep_poll_add(ring_.next(&news_), peers_->fd(), POLLIN);
}

void Parts::receive_results(int) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(peers_->fd(), &count, sizeof count);
  peers_->run_results();
  quick_->run_results();
  if (copy_) {
    leaders_->run_results();
    own_.replica->run_results();
    copy_->replica->run_results();
  }
  wait_for_peers();
}

}  // namespace score::pario

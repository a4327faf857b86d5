// The server has one thread. A turn takes the available results, runs requests on names and
// attributes at once and starts those on data. At its end the store is committed, and only then are
// the answers sent. In this way many requests share a commit.
#include "pario/server/server.hpp"

#include "pario/core/bytes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr unsigned kRingEntries = 1'024;
constexpr std::size_t kMostConnections = 1'024;
constexpr int kMostTries = 100;  // to bind the port
constexpr int kPauseMs = 50;
// A client repeats a request for 20 s. A process that was stopped in the meantime repeats it when
// it continues.
constexpr std::int64_t kKeepAnswersNs = std::int64_t{3'600} * 1'000'000'000;
constexpr std::size_t kMostMemory = std::size_t{128} << 20;  // of data in flight
static_assert(kMostMemory >= kMaxDataBytes);

std::string name_of(const sockaddr_storage& address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const int result =
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(),
                    port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  return result == 0 ? std::string(host.data()) + ":" + port.data() : "unknown";
}

void set_up_socket(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

struct Server::Accept final : Completion {
  explicit Accept(Server& owner) : server(owner) {}

  void complete(int result) override { server.accepted(result); }

  Server& server;
  sockaddr_storage address{};
  socklen_t length = 0;
};

struct Server::Tick final : Completion {
  explicit Tick(Server& owner) : server(owner) {}

  void complete(int) override { server.tick(); }

  Server& server;
  __kernel_timespec second{1, 0};
};

// Handles results of other servers.
struct Server::News final : Completion {
  explicit News(Server& owner) : server(owner) {}

  void complete(int) override {
    server.peers_->run_results();
    if (server.leaders_) server.leaders_->run_results();
    if (server.own_replica_) server.own_replica_->run_results();
    if (server.other_replica_) server.other_replica_->run_results();
    server.wait_for_peers();
  }

  Server& server;
  std::uint64_t count = 0;
};

// Holds the replica of another server's part, in a directory below that of this server.
struct Server::Copy {
  explicit Copy(std::uint64_t capacity) : files(capacity) {}

  UniqueFd directory;
  std::unique_ptr<Store> store;
  DataFiles files;
  std::unique_ptr<Metadata> metadata;
  std::unique_ptr<DataRequests> data;
  std::unique_ptr<TransactionRequests> transactions;
};

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      identity_{options_.volume.key, options_.volume.name, options_.server},
      files_(options_.capacity),
      accept_(std::make_unique<Accept>(*this)),
      tick_(std::make_unique<Tick>(*this)),
      news_(std::make_unique<News>(*this)) {}

Server::~Server() = default;

int Server::lock_directory(std::string& message) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  directory_ = UniqueFd(::open(options_.directory.c_str(), kFlags));
  if (!directory_) {
    message = options_.directory + ": " + std::strerror(errno);
    return errno;
  }
  if (::flock(directory_.get(), LOCK_EX | LOCK_NB) != 0) {
    message = options_.directory + ": another scored-pario uses this directory";
    return EBUSY;
  }
  return 0;
}

int Server::open_store(std::string& message) {
  const std::string path = options_.directory + "/metadata";
  if (::mkdirat(directory_.get(), "metadata", 0700) != 0 && errno != EEXIST) {
    message = path + ": " + std::strerror(errno);
    return errno;
  }
  if (const int error = Store::open(path, identity_of(options_.server), store_, message)) {
    message = options_.directory + ": " + message;
    return error;
  }
  // A file is left over if the server was killed between the removal of its attributes and that of
  // its data.
  const auto is_left_over = [this](FileId id) {
    Inode inode;
    return home_of(id) == options_.server && store_->get(id, inode) == ENOENT;
  };
  const int error = files_.open(directory_.get(), is_left_over);
  if (error != 0) message = options_.directory + "/data: " + std::strerror(error);
  static_cast<void>(store_->commit());
  return error;
}

Store::Identity Server::identity_of(std::uint32_t part) const {
  const auto servers = static_cast<std::uint32_t>(options_.volume.servers.size());
  return {options_.volume.name, part, servers, options_.volume.stripe};
}

// This server has a copy of the part of the previous server.
std::uint32_t Server::copied_part() const {
  const auto servers = static_cast<std::uint32_t>(options_.volume.servers.size());
  return (options_.server + servers - 1) % servers;
}

int Server::open_copy(std::string& message) {
  const std::uint32_t part = copied_part();
  const std::string path = options_.directory + "/copy";
  copy_ = std::make_unique<Copy>(options_.capacity);
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
  if (::mkdirat(directory_.get(), "copy", 0700) == 0 || errno == EEXIST) {
    copy_->directory = UniqueFd(::openat(directory_.get(), "copy", kFlags));
  }
  const bool has_store =
      copy_->directory &&
      (::mkdirat(copy_->directory.get(), "metadata", 0700) == 0 || errno == EEXIST);
  if (!has_store) {
    message = path + ": " + std::strerror(errno);
    return errno;
  }
  int error = Store::open(path + "/metadata", identity_of(part), copy_->store, message);
  if (error == 0) error = copy_->files.open(copy_->directory.get(), [](FileId) { return false; });
  if (error == 0) error = copy_->store->commit();
  if (error != 0) {
    message = path + ": " + (message.empty() ? std::strerror(error) : message);
    return error;
  }
  const auto servers = static_cast<std::uint32_t>(options_.volume.servers.size());
  copy_->metadata =
      std::make_unique<Metadata>(Metadata::Place{part, servers}, *copy_->store, copy_->files);
  const auto finish = [this](TransferPtr done) { answer(std::move(done)); };
  copy_->data = std::make_unique<DataRequests>(ring_, copy_->files, *copy_->metadata, finish);
  copy_->transactions = std::make_unique<TransactionRequests>(
      TransactionRequests::Parts{ring_, copy_->files, *copy_->metadata, *leaders_},
      static_cast<std::uint16_t>(part), finish);
  return 0;
}

int Server::open_replicas(std::string& message) {
  if (const int error = open_copy(message)) return error;
  const Replication::Hooks hooks{
      [this](TransferPtr transfer) { execute_here(std::move(transfer)); },
      [this](TransferPtr transfer) { answered_.push_back(std::move(transfer)); }};
  const std::uint32_t next = copy_server(options_.server, options_.volume.servers.size());
  own_replica_ = std::make_unique<Replication>(
      Replication::Place{options_.volume, options_.server, next, true, options_.capacity},
      Replication::Parts{*store_, files_, *metadata_, *peers_, *transactions_}, hooks);
  other_replica_ = std::make_unique<Replication>(
      Replication::Place{options_.volume, copied_part(), copied_part(), false, options_.capacity},
      Replication::Parts{*copy_->store, copy_->files, *copy_->metadata, *peers_,
                         *copy_->transactions},
      hooks);
  int error = own_replica_->open();
  if (error == 0) error = other_replica_->open();
  if (error == 0) error = transactions_->open(directory_.get());
  if (error == 0) error = copy_->transactions->open(copy_->directory.get());
  if (error != 0) message = options_.directory + ": replicas: " + std::strerror(error);
  return error;
}

Server::Parts Server::parts_of(const Request& request) {
  if (copy_ && request.part == copied_part() + 1) {
    return {*copy_->store, copy_->files, *copy_->metadata, *copy_->data, *copy_->transactions};
  }
  return {*store_, files_, *metadata_, *data_, *transactions_};
}

int Server::listen(std::string& message) {
  const ServerAddress& address = options_.volume.servers[options_.server];
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int result = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  message = address.host + ":" + address.port + ": ";
  if (result != 0) {
    message += ::gai_strerror(result);
    return EADDRNOTAVAIL;
  }
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr && error != 0; one = one->ai_next) {
    listener_ = UniqueFd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool works = listener_ && ::bind(listener_.get(), one->ai_addr, one->ai_addrlen) == 0 &&
                       ::listen(listener_.get(), 256) == 0;
    error = works ? 0 : errno;
  }
  ::freeaddrinfo(found);
  if (error != 0) message += std::strerror(error);
  return error;
}

// The port of a killed server is free once the kernel has ended its io_uring, which continues after
// the end of the process.
int Server::listen_soon(std::string& message) {
  if (options_.listener) {
    listener_ = std::move(options_.listener);
    return 0;
  }
  for (int tries = 0;; ++tries) {
    const int error = listen(message);
    if (error != EADDRINUSE || tries == kMostTries) return error;
    ::poll(nullptr, 0, kPauseMs);
  }
}

int Server::start(std::string& message) {
  if (const int error = lock_directory(message)) return error;
  if (const int error = open_store(message)) return error;
  if (const int error = ring_.open(kRingEntries)) {
    message = "io_uring is not available on this host (see the sysctl kernel.io_uring_disabled): ";
    message += std::strerror(error);
    return error;
  }
  if (const int error = listen_soon(message)) return error;
  const auto servers = static_cast<std::uint32_t>(options_.volume.servers.size());
  metadata_ =
      std::make_unique<Metadata>(Metadata::Place{options_.server, servers}, *store_, files_);
  const auto finish = [this](TransferPtr transfer) { answer(std::move(transfer)); };
  data_ = std::make_unique<DataRequests>(ring_, files_, *metadata_, finish);
  peers_ = std::make_unique<Peers>(options_.volume);
  moves_ = std::make_unique<Moves>(*store_, *peers_, servers, finish);
  const bool has_replicas = options_.volume.replicas > 1;
  if (has_replicas) leaders_ = std::make_unique<Peers>(options_.volume, peers_.get());
  const TransactionRequests::Parts parts{ring_, files_, *metadata_,
                                         has_replicas ? *leaders_ : *peers_};
  transactions_ = std::make_unique<TransactionRequests>(
      parts, static_cast<std::uint16_t>(options_.server), finish);
  int error = moves_->open();
  if (error == 0 && has_replicas) return open_replicas(message);
  if (error == 0) error = transactions_->open(directory_.get());
  if (error != 0) message = options_.directory + "/transactions: " + std::strerror(error);
  return error;
}

int Server::run() {
  accept();
  tick();
  wait_for_peers();
  while (!is_stopped_ && fault_ == 0) {
    if (const int error = ring_.turn(timeout_us())) return error;
    watch_time();
    wake_due();
    end_turn();
  }
  if (fault_ != 0) return fault_;
  return store_->commit();
}

// If this process was stopped, perhaps with its whole node, the other replica may have taken over
// in the meantime.
void Server::watch_time() {
  constexpr std::int64_t kStandstillMs = 5'000;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ms = std::int64_t{now.tv_sec} * 1'000 + now.tv_nsec / 1'000'000;
  if (last_turn_ms_ != 0 && now_ms - last_turn_ms_ > kStandstillMs && own_replica_) {
    own_replica_->stood_still();
    other_replica_->stood_still();
  }
  last_turn_ms_ = now_ms;
}

void Server::accept() {
  accept_->length = sizeof accept_->address;
  io_uring_prep_accept(ring_.next(accept_.get()), listener_.get(),
                       reinterpret_cast<sockaddr*>(&accept_->address), &accept_->length,
                       SOCK_CLOEXEC);
  is_accepting_ = true;
}

void Server::accepted(int result) {
  if (result >= 0) {
    set_up_socket(result);
    auto connection = std::make_unique<Connection>(
        result, name_of(accept_->address, accept_->length), identity_, ring_, *this);
    if (connections_.size() >= kMostConnections) {
      refused(Refused::TooSlow, name_of(accept_->address, accept_->length));
    } else if (connection->start() == 0) {
      Connection* key = connection.get();
      connections_.emplace(key, std::move(connection));
    }
  }
  // There are no free descriptors, so tick() tries again.
  is_accepting_ = false;
  if (result != -EMFILE && result != -ENFILE) accept();
}

void Server::tick() {
  if (must_remove_) is_stopped_ = true;
  for (const auto& [key, connection] : connections_) connection->tick();
  transactions_->tick();
  if (copy_) copy_->transactions->tick();
  moves_->tick();
  // The next change reports an error.
  const std::int64_t forgotten_ns = wall_ns() - kKeepAnswersNs;
  static_cast<void>(store_->forget_answers(forgotten_ns));
  if (copy_) static_cast<void>(copy_->store->forget_answers(forgotten_ns));
  const std::int64_t expires = options_.volume.expires_s;
  if (expires != 0 && wall_ns() / 1'000'000'000 >= expires && !must_remove_) {
    log_notice("Volume expired", kv("volume", options_.volume.name));
    must_remove_ = true;
    is_stopped_ = true;
  }
  if (own_replica_) own_replica_->tick();
  if (other_replica_) other_replica_->tick();
  leases_.tick(monotonic_us() / 1'000);
  end_parked(rank_barriers_.tick(monotonic_us() / 1'000));
  if (!is_accepting_) accept();
  io_uring_prep_timeout(ring_.next(tick_.get()), &tick_->second, 0, 0);
}

void Server::wait_for_peers() {
  io_uring_prep_read(ring_.next(news_.get()), peers_->fd(), &news_->count, sizeof news_->count, 0);
}

void Server::read(TransferPtr transfer) {
  const Parts parts = parts_of(transfer->request);
  if ((transfer->request.flags & kStamped) != 0) {
    std::uint64_t stamp = 0;
    int error = parts.transactions.stamp(transfer->request, stamp);
    // A client writes the file directly, for a second or two; it gets no new lease.
    if (error == 0 && has_direct_writer(transfer->request.id)) error = EAGAIN;
    transfer->answer.error = error;
    if (error != 0) return answered_.push_back(std::move(transfer));
    put(transfer->answer.body, stamp);
  }
  parts.data.start(std::move(transfer));
}

void Server::execute(TransferPtr transfer) {
  ++counts_.requests;
  Request& request = transfer->request;
  if (request.part == 0) request.part = options_.server + 1;
  const bool is_own = request.part == options_.server + 1;
  const bool is_copy = copy_ && request.part == copied_part() + 1;
  if (home_of(request.id) >= options_.volume.servers.size() || (!is_own && !is_copy) ||
      (!own_replica_ && (request.flags & kForwarded) != 0)) {
    transfer->answer.error = EINVAL;
    answered_.push_back(std::move(transfer));
    return;
  }
  if (request.op == Op::Destroy) {  // the server ends after the reply
    log_notice("Volume destroyed", kv("volume", options_.volume.name));
    must_remove_ = true;
    return answered_.push_back(std::move(transfer));
  }
  const bool is_plain =
      (request.op == Op::Write || request.op == Op::Truncate) && (request.flags & kForwarded) == 0;
  if (is_plain && !parts_of(request).transactions.admit(transfer)) return;
  route(std::move(transfer));
}

void Server::route(TransferPtr transfer) {
  const bool is_of_part = transfer->request.op != Op::OpenChannel;
  if (!own_replica_ || !is_of_part) return execute_here(std::move(transfer));
  const bool is_own = transfer->request.part == options_.server + 1;
  (is_own ? *own_replica_ : *other_replica_).run(std::move(transfer));
}

// Routes plain changes that have waited for transactions.
void Server::route_admitted() {
  for (TransferPtr& transfer : transactions_->take_admitted()) route(std::move(transfer));
  if (!copy_) return;
  for (TransferPtr& transfer : copy_->transactions->take_admitted()) route(std::move(transfer));
}

// Answers a request that has ended here; a change of a leader is forwarded first.
void Server::answer(TransferPtr transfer) {
  if (!transfer->flushed.empty() && transfer->answer.error == 0) {
    TransactionRequests& transactions = parts_of(transfer->request).transactions;
    return transactions.end_flush(std::move(transfer));
  }
  if (transfer->replication != nullptr) {
    Replication& replication = *transfer->replication;
    return replication.local_done(std::move(transfer));
  }
  answered_.push_back(std::move(transfer));
}

void Server::execute_here(TransferPtr transfer) {
  const Parts parts = parts_of(transfer->request);
  switch (transfer->request.op) {
    case Op::Read:
      return read(std::move(transfer));
    case Op::Write:
      return parts.data.start(std::move(transfer));
    case Op::Sync:
      syncs_.push_back(std::move(transfer));
      return;
    case Op::Statistics:
      statistics(*transfer);
      break;
    case Op::StageTransaction:
    case Op::PrepareTransaction:
    case Op::DecideTransaction:
    case Op::FinishTransaction:
    case Op::ReportOutcome:
    case Op::EndTransaction:
      return parts.transactions.run(std::move(transfer));
    case Op::Move:
      parts.metadata.run(*transfer, wall_ns());
      return moves_->run(std::move(transfer));
    case Op::OpenData:
      transfer->answer.error = describe_data(transfer->answer);
      break;
    case Op::Lease:
      transfer->answer.error = lease(*transfer);
      break;
    case Op::Gather:
      return gather(std::move(transfer));
    case Op::OpenChannel:
      transfer->connection->open_session(*transfer);
      break;
    default:
      const std::int64_t chosen = transfer->request.forwarded.time_ns;
      parts.metadata.run(*transfer, chosen != 0 ? chosen : wall_ns());
  }
  answer(std::move(transfer));
}

void Server::statistics(Transfer& transfer) {
  const Parts parts = parts_of(transfer.request);
  counts_.capacity = parts.files.quota().capacity();
  counts_.used = parts.files.quota().used();
  counts_.files = parts.store.count();
  counts_.bytes_read = parts.data.bytes_read();
  counts_.bytes_written = parts.data.bytes_written() + written_directly_;
  counts_.queue = counts_.requests > replied_ ? counts_.requests - replied_ - 1 : 0;
  counts_.pm_clients = static_cast<std::uint64_t>(
      std::ranges::count_if(sessions_, [](const Connection* one) { return one->has_session(); }));
  put(transfer.answer.body, counts_);
}

void Server::end_turn() {
  route_admitted();
  if (store_->has_changes()) ++commits_;
  int error = store_->commit();
  moves_->committed(error);
  for (const FileId id : metadata_->take_removals()) {
    transactions_->file_changed(id);
    if (error == 0) static_cast<void>(files_.remove(id));
  }
  if (copy_) {
    const int failed = copy_->store->commit();
    for (const FileId id : copy_->metadata->take_removals()) {
      copy_->transactions->file_changed(id);
      if (failed == 0) static_cast<void>(copy_->files.remove(id));
    }
    if (error == 0) error = failed;
  }
  if (error != 0) {
    log_error("Cannot store metadata", kv("err", std::string_view(std::strerror(error))));
  }
  start_syncs();
  fault_ = transactions_->end_turn();
  if (copy_ && fault_ == 0) fault_ = copy_->transactions->end_turn();
  if (own_replica_ && fault_ == 0) fault_ = own_replica_->fault();
  if (other_replica_ && fault_ == 0) fault_ = other_replica_->fault();
  // Replies can make room for more requests, which are answered in the next turn, or at once.
  std::vector<TransferPtr> answered = std::exchange(answered_, {});
  for (TransferPtr& transfer : answered) {
    const Op op = transfer->request.op;
    const bool is_data = op == Op::Read || op == Op::Write;
    if (error != 0 && !is_data) transfer->answer.error = error;
    if (op == Op::Sync && transfer->answer.error == 0 && !copy_) {
      synced_ = std::max(synced_, transfer->answer.number);
    }
    ++replied_;
    if (transfer->transactions != nullptr) transfer->transactions->end_plain(*transfer);
    Connection& connection = *transfer->connection;
    connection.reply(std::move(transfer));
  }
  run_sessions();
  remove_ended();
  if (!answered_.empty() || !syncs_.empty()) end_turn();
}

void Server::start_syncs() {
  for (TransferPtr& transfer : std::exchange(syncs_, {})) {
    transfer->answer.number = commits_;
    const Parts parts = parts_of(transfer->request);
    transfer->flushed = parts.transactions.begin_flush(transfer->request.id);
    const bool is_on_disk = !copy_ && synced_ >= commits_;
    parts.data.start_sync(std::move(transfer), is_on_disk ? -1 : parts.store.fd());
  }
}

bool Server::admit(Connection& connection, std::size_t memory) {
  if (memory_ + memory <= kMostMemory) {
    memory_ += memory;
    return true;
  }
  if (std::ranges::find(waiting_, &connection) == waiting_.end()) waiting_.push_back(&connection);
  return false;
}

void Server::release(std::size_t memory) {
  memory_ -= memory;
  for (Connection* connection : std::exchange(waiting_, {})) connection->resume();
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

void Server::refused(Refused why, const std::string& peer) {
  constexpr std::array<std::string_view, 3> kTexts{"wrong key or volume", "malformed request",
                                                   "too slow, or too many connections"};
  std::uint64_t& count = why == Refused::WrongKey     ? counts_.refused_keys
                         : why == Refused::BadRequest ? counts_.refused_requests
                                                      : counts_.refused_slow;
  ++count;
  if (limiter_.allow(monotonic_now())) {
    log_warning("Refused client", kv("peer", peer),
                kv("reason", kTexts[static_cast<std::size_t>(why)]),
                kv("suppressed", limiter_.take_suppressed()));
  }
}

void Server::ended(Connection& connection) {
  ended_.push_back(&connection);
}

void Server::remove_ended() {
  for (Connection* connection : std::exchange(ended_, {})) {
    std::erase(waiting_, connection);
    std::erase(woken_, connection);
    std::erase(sessions_, connection);
    connections_.erase(connection);
  }
}

}  // namespace score::pario

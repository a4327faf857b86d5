// One thread. A turn takes the results that are there, runs requests on names and attributes at
// once and starts those on data; at its end the store is committed, and only then what was
// answered is sent. So many requests share a commit.
#include "pario/server/server.hpp"

#include "pario/core/bytes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <utility>

namespace score::pario {
namespace {

constexpr unsigned kRingEntries = 1'024;
constexpr std::size_t kMostConnections = 1'024;
constexpr int kMostTries = 100;  // to have the port
constexpr int kPauseMs = 50;
constexpr std::size_t kMostMemory = std::size_t{128} << 20;  // of data in flight
static_assert(kMostMemory >= kMaxDataBytes);

std::int64_t wall_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

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

// Results of other servers.
struct Server::News final : Completion {
  explicit News(Server& owner) : server(owner) {}

  void complete(int) override {
    server.peers_->run_results();
    server.wait_for_peers();
  }

  Server& server;
  std::uint64_t count = 0;
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
  const auto servers = static_cast<std::uint32_t>(options_.volume.servers.size());
  const Store::Identity identity{options_.volume.name, options_.server, servers,
                                 options_.volume.stripe};
  if (const int error = Store::open(path, identity, store_, message)) {
    message = options_.directory + ": " + message;
    return error;
  }
  // Killed between the removal of a file's attributes and that of its data.
  const auto is_left_over = [this](FileId id) {
    Inode inode;
    return home_of(id) == options_.server && store_->get(id, inode) == ENOENT;
  };
  const int error = files_.open(directory_.get(), is_left_over);
  if (error != 0) message = options_.directory + "/data: " + std::strerror(error);
  static_cast<void>(store_->commit());
  return error;
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

// The port of a server that was killed is free once the kernel has ended its io_uring, which goes
// on after the end of the process.
int Server::listen_soon(std::string& message) {
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
  const auto finish = [this](TransferPtr transfer) { answered_.push_back(std::move(transfer)); };
  data_ = std::make_unique<DataRequests>(ring_, files_, *metadata_, finish);
  peers_ = std::make_unique<Peers>(options_.volume);
  const TransactionRequests::Parts parts{ring_, files_, *metadata_, *peers_};
  transactions_ = std::make_unique<TransactionRequests>(
      parts, static_cast<std::uint16_t>(options_.server), finish);
  const int error = transactions_->open(directory_.get());
  if (error != 0) message = options_.directory + "/transactions: " + std::strerror(error);
  return error;
}

int Server::run() {
  accept();
  tick();
  wait_for_peers();
  while (!is_stopped_ && fault_ == 0) {
    if (const int error = ring_.turn()) return error;
    end_turn();
  }
  if (fault_ != 0) return fault_;
  return store_->commit();
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
  // Out of descriptors: tick() tries again.
  is_accepting_ = false;
  if (result != -EMFILE && result != -ENFILE) accept();
}

void Server::tick() {
  for (const auto& [key, connection] : connections_) connection->tick();
  transactions_->tick();
  if (!is_accepting_) accept();
  io_uring_prep_timeout(ring_.next(tick_.get()), &tick_->second, 0, 0);
}

void Server::wait_for_peers() {
  io_uring_prep_read(ring_.next(news_.get()), peers_->fd(), &news_->count, sizeof news_->count, 0);
}

void Server::read(TransferPtr transfer) {
  if ((transfer->request.flags & kStamped) != 0) {
    std::uint64_t stamp = 0;
    transfer->answer.error = transactions_->stamp(transfer->request, stamp);
    if (transfer->answer.error != 0) return answered_.push_back(std::move(transfer));
    put(transfer->answer.body, stamp);
  }
  data_->start(std::move(transfer));
}

void Server::execute(TransferPtr transfer) {
  ++counts_.requests;
  if (home_of(transfer->request.id) >= options_.volume.servers.size() ||
      transfer->request.part != 0) {
    transfer->answer.error = EINVAL;
    answered_.push_back(std::move(transfer));
    return;
  }
  switch (transfer->request.op) {
    case Op::Read:
      return read(std::move(transfer));
    case Op::Write:
      return data_->start(std::move(transfer));
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
    case Op::TellOutcome:
    case Op::EndTransaction:
      return transactions_->run(std::move(transfer));
    default:
      metadata_->run(*transfer, wall_ns());
  }
  answered_.push_back(std::move(transfer));
}

void Server::statistics(Transfer& transfer) {
  counts_.capacity = files_.quota().capacity();
  counts_.used = files_.quota().used();
  counts_.files = store_->count();
  counts_.bytes_read = data_->bytes_read();
  counts_.bytes_written = data_->bytes_written();
  append_statistics(counts_, transfer.answer.body);
}

void Server::end_turn() {
  if (store_->has_changes()) ++commits_;
  const int error = store_->commit();
  for (const FileId id : metadata_->take_removals()) {
    if (error == 0) static_cast<void>(files_.remove(id));
  }
  if (error != 0) {
    log_error("cannot store metadata", kv("err", std::string_view(std::strerror(error))));
  }
  start_syncs();
  fault_ = transactions_->end_turn();
  // Replies can make room for more requests, which are answered in the next turn, or at once.
  std::vector<TransferPtr> answered = std::exchange(answered_, {});
  for (TransferPtr& transfer : answered) {
    const Op op = transfer->request.op;
    const bool is_data = op == Op::Read || op == Op::Write;
    if (error != 0 && !is_data) transfer->answer.error = error;
    if (op == Op::Sync && transfer->answer.error == 0) {
      synced_ = std::max(synced_, transfer->answer.number);
    }
    Connection& connection = *transfer->connection;
    connection.reply(std::move(transfer));
  }
  remove_ended();
  if (!answered_.empty() || !syncs_.empty()) end_turn();
}

void Server::start_syncs() {
  for (TransferPtr& transfer : std::exchange(syncs_, {})) {
    transfer->answer.number = commits_;
    data_->start_sync(std::move(transfer), synced_ < commits_ ? store_->fd() : -1);
  }
}

bool Server::admit(Connection& connection, std::size_t memory) {
  if (memory_ + memory <= kMostMemory) {
    memory_ += memory;
    return true;
  }
  waiting_.push_back(&connection);
  return false;
}

void Server::release(std::size_t memory) {
  memory_ -= memory;
  for (Connection* connection : std::exchange(waiting_, {})) connection->resume();
}

void Server::refused(Refused why, const std::string& peer) {
  constexpr std::array<std::string_view, 3> kTexts{"wrong key or volume", "malformed request",
                                                   "too slow, or too many connections"};
  std::uint64_t& count = why == Refused::WrongKey     ? counts_.refused_keys
                         : why == Refused::BadRequest ? counts_.refused_requests
                                                      : counts_.refused_slow;
  ++count;
  if (limiter_.allow(monotonic_now())) {
    log_warning("refuse client", kv("peer", peer),
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
    connections_.erase(connection);
  }
}

}  // namespace score::pario

#include "pario/server/clients.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <utility>

namespace score::pario {
namespace {

constexpr std::size_t kMostConnections = 1'024;  // that have shown the key
constexpr std::size_t kMostUnproven = 256;
constexpr std::size_t kMostSessions = 256;  // 0.4 to 1.2 MB and two descriptors each
constexpr int kMostTries = 100;             // to bind the port
constexpr int kPauseMs = 50;
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

int open_listener(const ServerAddress& address, UniqueFd& listener, std::string& message) {
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
    listener = UniqueFd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool works = listener && ::bind(listener.get(), one->ai_addr, one->ai_addrlen) == 0 &&
                       ::listen(listener.get(), 256) == 0;
    error = works ? 0 : errno;
  }
  ::freeaddrinfo(found);
  if (error != 0) message += std::strerror(error);
  return error;
}

}  // namespace

bool SessionQueue::admit(Connection& connection) {
  if (std::ranges::find(sessions_, &connection) != sessions_.end()) return true;
  if (sessions_.size() == kMostSessions) return false;
  sessions_.push_back(&connection);
  return true;
}

void SessionQueue::wake(Connection& connection) {
  if (std::ranges::find(woken_, &connection) == woken_.end()) woken_.push_back(&connection);
}

void SessionQueue::wake_due() {
  std::int64_t now = -1;
  for (Connection* connection : sessions_) {
    const std::int64_t due = connection->session_due_us();
    if (due < 0) continue;
    if (now < 0) now = monotonic_us();
    if (due <= now) wake(*connection);
  }
}

void SessionQueue::run() {
  for (Connection* connection : std::exchange(woken_, {})) connection->run_session();
}

std::int64_t SessionQueue::timeout_us() const {
  if (!woken_.empty()) return 0;
  std::int64_t first = -1;
  for (const Connection* connection : sessions_) {
    const std::int64_t due = connection->session_due_us();
    if (due >= 0 && (first < 0 || due < first)) first = due;
  }
  return first < 0 ? -1 : std::max<std::int64_t>(first - monotonic_us(), 0);
}

void SessionQueue::forget(Connection& connection) {
  std::erase(woken_, &connection);
  std::erase(sessions_, &connection);
}

std::uint64_t SessionQueue::open_count() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(sessions_, [](const Connection* one) { return one->has_session(); }));
}

struct Clients::Accept final : Completion {
  explicit Accept(Clients& owner) : clients(owner) {}

  void complete(int result) override { clients.accepted(result); }

  Clients& clients;
  UniqueFd listener;
  bool is_running = false;
  sockaddr_storage address{};
  socklen_t length = 0;
};

Clients::Clients(Connection::Identity identity, Buffers& buffers, Ring& ring, Hooks hooks)
    : identity_(std::move(identity)),
      buffers_(buffers),
      ring_(ring),
      hooks_(std::move(hooks)),
      accept_(std::make_unique<Accept>(*this)) {}

Clients::~Clients() = default;

// The port of a killed server is free once the kernel has ended its io_uring, which continues after
// the end of the process.
int Clients::listen(const ServerAddress& address, UniqueFd socket, std::string& message) {
  accept_->listener = std::move(socket);
  if (accept_->listener) return 0;
  for (int tries = 0;; ++tries) {
    const int error = open_listener(address, accept_->listener, message);
    if (error != EADDRINUSE || tries == kMostTries) return error;
    ::poll(nullptr, 0, kPauseMs);
  }
}

void Clients::accept() {
  accept_->length = sizeof accept_->address;
  io_uring_prep_accept(ring_.next(accept_.get()), accept_->listener.get(),
                       reinterpret_cast<sockaddr*>(&accept_->address), &accept_->length,
                       SOCK_CLOEXEC);
  accept_->is_running = true;
}

bool Clients::make_place() {
  std::erase_if(unproven_, [](const Connection* one) { return one->is_authenticated(); });
  if (connections_.size() - unproven_.size() >= kMostConnections) return false;
  if (unproven_.size() < kMostUnproven) return true;
  Connection* const oldest = unproven_.front();
  unproven_.erase(unproven_.begin());
  oldest->give_way();
  return true;
}

void Clients::accepted(int result) {
  if (result >= 0) {
    set_up_socket(result);
    const std::string peer = name_of(accept_->address, accept_->length);
    auto connection = std::make_unique<Connection>(result, peer, identity_, ring_, *this);
    if (!make_place()) {
      refused(Refused::TooSlow, peer);
    } else if (connection->start() == 0) {
      Connection* key = connection.get();
      unproven_.push_back(key);
      connections_.emplace(key, std::move(connection));
    }
  }
  // There are no free descriptors, so tick() tries again.
  accept_->is_running = false;
  if (result != -EMFILE && result != -ENFILE) accept();
}

void Clients::tick() {
  for (const auto& [key, connection] : connections_) connection->tick();
  if (!accept_->is_running) accept();
}

void Clients::end_turn() {
  sessions_.run();
  for (Connection* connection : std::exchange(ended_, {})) {
    std::erase(waiting_, connection);
    std::erase(unproven_, connection);
    sessions_.forget(*connection);
    connections_.erase(connection);
  }
}

Statistics Clients::counts() const {
  Statistics counts = counts_;
  counts.pm_clients = sessions_.open_count();
  return counts;
}

void Clients::execute(TransferPtr transfer) {
  ++counts_.requests;
  hooks_.execute(std::move(transfer));
}

bool Clients::admit(Connection& connection, std::size_t memory) {
  if (memory_ + memory <= kMostMemory) {
    memory_ += memory;
    return true;
  }
  if (std::ranges::find(waiting_, &connection) == waiting_.end()) waiting_.push_back(&connection);
  return false;
}

void Clients::release(std::size_t memory) {
  memory_ -= memory;
  for (Connection* connection : std::exchange(waiting_, {})) connection->resume();
}

void Clients::refused(Refused why, const std::string& peer) {
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

void Clients::fell_back(int error, const std::string& peer) {
  ++counts_.tcp_fallbacks;
  if (!limiter_.allow(monotonic_now())) return;
  log_warning("Client cannot use PM; its data goes by TCP", kv("peer", peer),
              kv("err", std::string_view(std::strerror(error))),
              kv("suppressed", limiter_.take_suppressed()));
}

}  // namespace score::pario

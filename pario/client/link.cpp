#include "pario/client/link.hpp"

#include "pario/core/waits/file_locks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <random>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr unsigned kMostTries = 4;
constexpr int kOtherReplicaMs = 100;  // before the other replica is asked again
constexpr int kConnectMs = 3'000;
constexpr int kProbeMs = 80;  // of a server that is known to be dead

// Such requests are answered late, and do not count for the window.
bool waits_for_others(const Request& request) {
  return request.op == Op::Gather || (request.op == Op::Lock && (request.mode & kWaitForLock) != 0);
}

std::uint64_t random_number() {
  std::random_device device;
  return std::uniform_int_distribution<std::uint64_t>(1)(device);
}

}  // namespace

Link::Link(const VolumeDescription& volume, std::uint32_t server, Transport transport)
    : volume_(volume),
      server_(server),
      reconnect_seconds_(volume.replicas > 1 ? kReconnectSeconds : static_cast<int>(volume.wait_s)),
      has_copy_(volume.replicas > 1),
      remembers_(volume.replicas == 1),
      client_(random_number()),
      // If the data is also sent to the copy, PM in memory does not save time.
      transport_(has_copy_ && transport == Transport::Usual ? Transport::Tcp : transport) {}

Link::Link(const VolumeDescription& volume, std::uint32_t server, const Peer& peer)
    : volume_(volume),
      server_(server),
      reconnect_seconds_(peer.reconnect_seconds),
      most_try_ms_(peer.has_copy ? 2'000 : kMostTryMs),
      has_copy_(peer.has_copy),
      remembers_(peer.remembers),
      client_(random_number()),
      transport_(Transport::Tcp) {}

Link::~Link() {
  if (fd_ >= 0) ::close(fd_);
}

int Link::open() {
  const std::scoped_lock lock(send_mutex_);
  int error = connect(kConnectMs);
  if (error != 0 && has_copy_) error = connect(kConnectMs);  // try the other replica
  const std::scoped_lock state(mutex_);
  if (error == 0) generation_ = 1;
  is_dead_ = error != 0 && remembers_;
  if (is_dead_) dead_until_ms_ = monotonic_ms() + kDeadMs;
  return error;
}

void Link::start(Call& call) {
  {
    Lock lock(mutex_);
    if (is_dead_ && monotonic_ms() < dead_until_ms_) {
      call.error = EIO;
      call.has_slot = false;
      call.is_done = true;
      return;
    }
    const bool is_gather = waits_for_others(call.request);
    while (!is_gather && calls_.size() - gathers_ >= kClientWindow) {
      if (is_reading_) {
        room_.wait(lock);
      } else {
        progress(lock);
      }
    }
    call.is_done = false;
    call.error = 0;
    call.tries = 0;
    call.since_ms = monotonic_ms();
    call.generation = 0;
    call.request.tag = next_tag_++;
    call.has_slot = can_be_once(call.request.op) && (call.request.flags & kForwarded) == 0;
    if (call.has_slot) number(call);
    calls_.emplace(call.request.tag, &call);
    if (is_gather) ++gathers_;
    hand_over();
  }
  const std::scoped_lock sending(send_mutex_);
  {
    const std::scoped_lock lock(mutex_);
    // A thread that connected again has sent it, or has given up.
    if (call.is_done || generation_ == 0 || call.generation == generation_) return;
    call.generation = generation_;
  }
  // The reader detects the failure, connects again, and sends all calls.
  if (!send_call(call)) ::shutdown(fd_, SHUT_RDWR);
}

// This needs mutex_. There are as many slots as requests in flight.
void Link::number(Call& call) {
  std::uint32_t slot = 0;
  while (used_slots_.test(slot)) ++slot;
  used_slots_.set(slot);
  call.request.flags |= kOnce;
  call.request.once = {client_, slot, ++sequences_[slot]};
}

void Link::finish(Call& call) {
  Lock lock(mutex_);
  std::condition_variable news;
  while (!call.is_done) {
    if (is_reading_) {
      call.waiter = &news;
      news.wait(lock);
      call.waiter = nullptr;
    } else {
      progress(lock);
    }
  }
  hand_over();
}

// Reads until a reply has arrived, or the state has changed otherwise.
void Link::progress(Lock& lock) {
  is_reading_ = true;
  const bool is_connected = generation_ != 0;
  lock.unlock();
  const bool is_ahead = !input_.is_empty();
  if (!is_connected || !(pm_ && !is_ahead ? read_any() : read_reply())) recover();
  lock.lock();
  is_reading_ = false;
}

// This needs mutex_; the calling thread no longer reads.
void Link::hand_over() {
  if (is_reading_) return;
  const auto waits = [](const auto& one) { return one.second->waiter != nullptr; };
  const auto next = std::ranges::find_if(calls_, waits);
  if (next != calls_.end()) {
    next->second->waiter->notify_one();
  } else {
    room_.notify_one();
  }
}

bool Link::send_call(Call& call) const {
  // The server of the copy also serves parts of other servers, and assumes its own part by default.
  if (has_copy_) call.request.part = server_ + 1;
  const bool is_data = call.request.op == Op::Read || call.request.op == Op::Write;
  if (pm_ && is_data && pm_->send(call.request, call.memory) == 0) return true;
  std::string bytes;
  append_request(call.request, bytes);
  std::vector<iovec> pieces{{bytes.data(), bytes.size()}};
  if (call.request.data_bytes > 0) {
    pieces.insert(pieces.end(), call.memory.begin(), call.memory.end());
  }
  return send_all(fd_, pieces);
}

bool Link::waits_for_ranks() {
  const std::scoped_lock lock(mutex_);
  return gathers_ > 0;
}

// Returns true if the server is silent because it waits for ranks, which takes a bounded time.
bool Link::is_patient() {
  constexpr int kMostSilences = 3;
  static_assert(kMostSilences * kSilenceMs > 60'000, "as long as the server waits");
  const std::scoped_lock lock(mutex_);
  return gathers_ == calls_.size() && ++silences_ < kMostSilences;
}

// Returns false if the connection is broken, or the server violates the protocol.
bool Link::read_reply() {
  pollfd news{fd_, POLLIN, 0};
  if (input_.is_empty() && waits_for_ranks() && ::poll(&news, 1, kSilenceMs) == 0) {
    return is_patient();
  }
  std::array<char, kHeaderBytes> header{};
  Reply reply;
  if (!input_.take(fd_, header) ||
      !parse_reply(std::span<const char, kHeaderBytes>(header), reply)) {
    return false;
  }
  Call* call = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = calls_.find(reply.tag);
    if (found == calls_.end()) return false;
    call = found->second;
  }
  // This replica does not lead, so recover() asks the other one.
  was_refused_ = has_copy_ && reply.error == EREMCHG;
  if (was_refused_) return false;
  std::string body(reply.body_bytes, '\0');
  if (!input_.take(fd_, body) || !read_data(*call, reply.data_bytes)) return false;
  const std::scoped_lock lock(mutex_);
  call->reply = reply;
  call->body = std::move(body);
  end_call(*call, static_cast<int>(reply.error));
  return true;
}

bool Link::read_any() {
  std::vector<PmLink::Arrived> arrived;
  switch (pm_->wait(fd_, arrived)) {
    case PmLink::News::Socket:
      return read_reply();
    case PmLink::News::Silent:
      return is_patient();
    case PmLink::News::Broken:
      return false;
    case PmLink::News::Replies:
      break;
  }
  return std::ranges::all_of(arrived, [this](PmLink::Arrived& one) { return take_arrived(one); });
}

bool Link::take_arrived(PmLink::Arrived& arrived) {
  const std::scoped_lock lock(mutex_);
  const auto found = calls_.find(arrived.reply.tag);
  if (found == calls_.end()) return false;
  was_refused_ = has_copy_ && arrived.reply.error == EREMCHG;
  if (was_refused_) return false;
  Call& call = *found->second;
  call.reply = arrived.reply;
  call.body = std::move(arrived.body);
  end_call(call, static_cast<int>(call.reply.error));
  return true;
}

bool Link::read_data(Call& call, std::size_t bytes) {
  if (bytes == 0) return true;
  if (takes_data(call.request.op)) return false;
  std::vector<iovec> pieces;
  for (iovec piece : call.memory) {
    piece.iov_len = std::min(piece.iov_len, bytes);
    bytes -= piece.iov_len;
    const std::size_t taken =
        input_.take_ahead({static_cast<char*>(piece.iov_base), piece.iov_len});
    piece = {static_cast<char*>(piece.iov_base) + taken, piece.iov_len - taken};
    if (piece.iov_len > 0) pieces.push_back(piece);
  }
  return bytes == 0 && receive_all(fd_, pieces);
}

// Runs in the thread that reads.
void Link::recover() {
  const std::scoped_lock sending(send_mutex_);
  pm_.reset();  // the old connection can no longer write to the callers' memory
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  input_ = {};
  unsigned generation = 0;
  {
    const std::scoped_lock lock(mutex_);
    generation = std::exchange(generation_, 0);
  }
  if (std::exchange(was_refused_, false)) {
    ::poll(nullptr, 0, kOtherReplicaMs);
    is_at_copy_ = !is_at_copy_;
  }
  bool is_dead = false;
  {
    const std::scoped_lock lock(mutex_);
    is_dead = is_dead_;
  }
  const int error = is_dead ? connect(kProbeMs) : connect_within(reconnect_seconds_);
  {
    const std::scoped_lock lock(mutex_);
    is_dead_ = error != 0 && error != EACCES && remembers_;
    if (is_dead_) dead_until_ms_ = monotonic_ms() + kDeadMs;
  }
  if (error != 0) return fail_all(error == EACCES ? EACCES : EIO);
  ++generation;
  if (!send_again(generation)) ::shutdown(fd_, SHUT_RDWR);
  const std::scoped_lock lock(mutex_);
  generation_ = generation == 0 ? 1 : generation;
}

bool Link::send_again(unsigned generation) {
  std::vector<Call*> calls;
  {
    const std::scoped_lock lock(mutex_);
    for (auto at = calls_.begin(); at != calls_.end();) {
      Call& call = *at->second;
      if (++call.tries < kMostTries || monotonic_ms() - call.since_ms < most_try_ms_) {
        call.generation = generation;
        calls.push_back(&call);
        ++at;
        continue;
      }
      ++at;
      end_call(call, EIO);
    }
  }
  return std::ranges::all_of(calls, [this](Call* call) { return send_call(*call); });
}

// This needs mutex_. The owner may delete `call` as soon as it is released.
void Link::end_call(Call& call, int error) {
  silences_ = 0;
  calls_.erase(call.request.tag);
  if (waits_for_others(call.request)) --gathers_;
  if (call.has_slot) used_slots_.reset(call.request.once.slot);
  call.error = error;
  call.is_done = true;
  if (call.waiter != nullptr) call.waiter->notify_one();
  room_.notify_one();
}

void Link::fail_all(int error) {
  const std::scoped_lock lock(mutex_);
  while (!calls_.empty()) end_call(*calls_.begin()->second, error);
}

int Link::connect_within(int seconds) {
  const std::int64_t end = monotonic_ms() + std::int64_t{seconds} * 1'000;
  for (int pause = 10;; pause = std::min(pause * 2, 500)) {
    const int error = connect(kConnectMs);
    // This retries even after EACCES, because a server that is killed in the handshake appears to
    // have refused the key.
    if (error == 0 || is_hurried_ || monotonic_ms() + pause > end) return error;
    ::poll(nullptr, 0, pause);
  }
}

// Connects to the server of the part. If that fails and there are replicas, the next call uses the
// server of the copy.
int Link::connect(int timeout_ms) {
  const std::uint32_t server = is_at_copy_ ? copy_server(server_, volume_.servers.size()) : server_;
  const ServerAddress& address = volume_.servers[server];
  int fd = -1;
  int error = connect_to(address.host, address.port, timeout_ms, fd);
  if (error == 0) {
    error = shake_hands(fd, server);
    if (error != 0) ::close(fd);
  }
  if (error != 0 && has_copy_) is_at_copy_ = !is_at_copy_;
  if (error != 0) return error;
  fd_ = fd;
  is_here_ = server == server_ && is_same_host(fd_);
  error = open_pm();
  if (error != 0) ::close(std::exchange(fd_, -1));
  if (error == 0) open_directory();
  return error;
}

// Must be called before other calls use the connection.
int Link::exchange(const Request& request, std::string& body) const {
  std::string bytes;
  append_request(request, bytes);
  iovec piece{bytes.data(), bytes.size()};
  std::array<char, kHeaderBytes> header{};
  Reply reply;
  if (!send_all(fd_, std::span(&piece, 1)) || !receive_all(fd_, header.data(), header.size())) {
    return ECONNRESET;
  }
  if (!parse_reply(std::span<const char, kHeaderBytes>(header), reply) || reply.data_bytes != 0) {
    return EPROTO;
  }
  body.assign(reply.body_bytes, '\0');
  if (!receive_all(fd_, body.data(), body.size())) return ECONNRESET;
  return static_cast<int>(reply.error);
}

int Link::open_channel(ChannelKind kind, std::uint64_t address, std::string& body) {
  return exchange(
      {.op = Op::OpenChannel, .mode = static_cast<std::uint32_t>(kind), .number = address}, body);
}

// The server may have been restarted by then, as a new process.
void Link::open_directory() {
  std::shared_ptr<DirectFiles> made;
  std::string body;
  DataPlace place;
  // A server must see the data, because the copy needs it too.
  const bool may_be_direct =
      !has_copy_ && (transport_ == Transport::Usual || transport_ == Transport::Nodes);
  if (may_be_direct && is_same_host(fd_) && exchange({.op = Op::OpenData}, body) == 0 &&
      parse_body(body, place)) {
    made = DirectFiles::open(place, [this](FileId id, std::uint64_t bytes, std::uint64_t written) {
      return take_lease(id, bytes, written);
    });
  }
  const std::scoped_lock lock(direct_mutex_);
  direct_ = std::move(made);
}

int Link::take_lease(FileId id, std::uint64_t bytes, std::uint64_t written) {
  Call one;
  one.request = {.op = Op::Lease, .id = id, .number = bytes, .other = written};
  start(one);
  finish(one);
  return one.error;
}

bool Link::is_near() {
  const std::scoped_lock lock(direct_mutex_);
  return direct_ != nullptr;
}

bool Link::run_directly(Call& call) {
  // These requests require more than a read or write by the server.
  if (call.request.flags != 0 || call.request.part != 0) return false;
  std::shared_ptr<DirectFiles> direct;
  {
    const std::scoped_lock lock(direct_mutex_);
    direct = direct_;
  }
  if (!direct || !direct->run(call.request, call.memory, call.reply)) return false;
  call.error = 0;
  call.is_done = true;
  return true;
}

// Without PM, data goes by TCP. An error means that the connection as a whole has failed.
int Link::open_pm() {
  // If datagrams do not pass to one server they do not pass to the next one, so do not wait for
  // each of them.
  static std::atomic<bool> is_blocked = false;
  const bool is_wanted = transport_ != Transport::Usual && transport_ != Transport::Tcp;
  const bool may_try = !is_wanted || !is_blocked || is_same_host(fd_);
  const int error = may_try ? PmLink::open(fd_, transport_, *this, pm_) : ETIMEDOUT;
  if (error == ECONNRESET) return error;
  if (error == 0 || !is_wanted) return 0;
  if (error == ETIMEDOUT) is_blocked = true;
  report_fallback(error);
  return 0;
}

void Link::report_fallback(int error) {
  std::string body;
  static_cast<void>(open_channel(ChannelKind::None, static_cast<std::uint64_t>(error), body));
  static std::once_flag is_said;
  std::call_once(is_said, [&] {
    const ServerAddress& address = volume_.servers[server_];
    std::fprintf(stderr, "libpario: server %s:%s: PM cannot be used (%s); using TCP\n",
                 address.host.c_str(), address.port.c_str(),
                 error == ETIMEDOUT ? "no answer over UDP" : std::strerror(error));
  });
}

// A server that closes the connection after the proof has refused the key.
int Link::shake_hands(int fd, std::uint32_t server) const {
  std::array<char, kGreetingBytes> greeting{};
  if (!receive_all(fd, greeting.data(), greeting.size())) return ECONNRESET;
  if (std::string_view(greeting.data(), kMagic.size()) != kMagic) return EPROTO;
  ProofOf of{{}, {}, server, volume_.name, true};
  std::copy_n(greeting.data() + kMagic.size(), of.server_nonce.size(), of.server_nonce.data());
  if (::getrandom(of.client_nonce.data(), of.client_nonce.size(), 0) < 0) return errno;
  const Proof mine = make_proof(volume_.key, of);
  std::string answer(kMagic);
  answer.append(of.client_nonce.data(), of.client_nonce.size());
  answer.append(mine.data(), mine.size());
  iovec piece{answer.data(), answer.size()};
  if (!send_all(fd, std::span(&piece, 1))) return ECONNRESET;
  Proof proof{};
  if (!receive_all(fd, proof.data(), proof.size())) return EACCES;
  of.by_client = false;
  return is_equal(proof, make_proof(volume_.key, of)) ? 0 : EACCES;
}

}  // namespace score::pario

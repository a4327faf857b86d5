#include "pario/client/link.hpp"

#include "pario/client/socket_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr unsigned kMostTries = 4;  // and kMostTryMs: then it is the request's fault
constexpr std::int64_t kMostTryMs = 20'000;
constexpr int kOtherReplicaMs = 100;  // until the other replica is asked again
constexpr int kConnectMs = 3'000;

std::int64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000 + now.tv_nsec / 1'000'000;
}

}  // namespace

Link::~Link() {
  if (fd_ >= 0) ::close(fd_);
}

int Link::open() {
  const std::scoped_lock lock(send_mutex_);
  int error = connect();
  if (error != 0 && has_copy_) error = connect();  // to the other replica
  const std::scoped_lock state(mutex_);
  if (error == 0) generation_ = 1;
  return error;
}

void Link::start(Call& call) {
  {
    Lock lock(mutex_);
    while (calls_.size() >= kClientWindow) progress(lock);
    call.is_done = false;
    call.error = 0;
    call.tries = 0;
    call.since_ms = monotonic_ms();
    call.generation = 0;
    call.request.tag = next_tag_++;
    calls_.emplace(call.request.tag, &call);
  }
  const std::scoped_lock sending(send_mutex_);
  {
    const std::scoped_lock lock(mutex_);
    // A thread that connected again has sent it, or has given up.
    if (call.is_done || generation_ == 0 || call.generation == generation_) return;
    call.generation = generation_;
  }
  // The reader notices, connects again, and sends all calls.
  if (!send_call(call)) ::shutdown(fd_, SHUT_RDWR);
}

void Link::finish(Call& call) {
  Lock lock(mutex_);
  while (!call.is_done) progress(lock);
}

// Waits until something has changed.
void Link::progress(Lock& lock) {
  if (is_reading_) {
    changed_.wait(lock);
    return;
  }
  is_reading_ = true;
  const bool is_connected = generation_ != 0;
  lock.unlock();
  if (!is_connected || !read_reply()) recover();
  lock.lock();
  is_reading_ = false;
  changed_.notify_all();
}

bool Link::send_call(Call& call) const {
  // The server of the copy serves parts of others; its own is meant otherwise.
  if (has_copy_) call.request.part = server_ + 1;
  std::string bytes;
  append_request(call.request, bytes);
  std::vector<iovec> pieces{{bytes.data(), bytes.size()}};
  if (call.request.data_bytes > 0) {
    pieces.insert(pieces.end(), call.memory.begin(), call.memory.end());
  }
  return send_all(fd_, pieces);
}

// False: the connection is broken, or the server does not follow the protocol.
bool Link::read_reply() {
  std::array<char, kHeaderBytes> header{};
  Reply reply;
  if (!receive_all(fd_, header.data(), header.size()) ||
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
  // This replica does not lead: recover() asks the other one.
  was_refused_ = has_copy_ && reply.error == EREMCHG;
  if (was_refused_) return false;
  std::string body(reply.body_bytes, '\0');
  if (!receive_all(fd_, body.data(), body.size()) || !read_data(*call, reply.data_bytes)) {
    return false;
  }
  const std::scoped_lock lock(mutex_);
  call->reply = reply;
  call->body = std::move(body);
  call->error = static_cast<int>(reply.error);
  call->is_done = true;
  calls_.erase(reply.tag);
  return true;
}

bool Link::read_data(Call& call, std::size_t bytes) {
  if (bytes == 0) return true;
  if (takes_data(call.request.op)) return false;
  std::vector<iovec> pieces;
  for (iovec piece : call.memory) {
    piece.iov_len = std::min(piece.iov_len, bytes);
    bytes -= piece.iov_len;
    if (piece.iov_len > 0) pieces.push_back(piece);
  }
  return bytes == 0 && receive_all(fd_, pieces);
}

// Runs in the thread that reads.
void Link::recover() {
  const std::scoped_lock sending(send_mutex_);
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  unsigned generation = 0;
  {
    const std::scoped_lock lock(mutex_);
    generation = std::exchange(generation_, 0);
  }
  if (was_refused_) {
    ::poll(nullptr, 0, kOtherReplicaMs);
    is_at_copy_ = !is_at_copy_;
  }
  const int error = connect_within(reconnect_seconds_);
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
      if (++call.tries < kMostTries || monotonic_ms() - call.since_ms < kMostTryMs) {
        call.generation = generation;
        calls.push_back(&call);
        ++at;
        continue;
      }
      call.error = EIO;
      call.is_done = true;
      at = calls_.erase(at);
    }
  }
  return std::ranges::all_of(calls, [this](Call* call) { return send_call(*call); });
}

void Link::fail_all(int error) {
  const std::scoped_lock lock(mutex_);
  for (const auto& [tag, call] : calls_) {
    call->error = error;
    call->is_done = true;
  }
  calls_.clear();
}

int Link::connect_within(int seconds) {
  const std::int64_t end = monotonic_ms() + std::int64_t{seconds} * 1'000;
  for (int pause = 10;; pause = std::min(pause * 2, 500)) {
    const int error = connect();
    // Also after EACCES: a server that is killed in the handshake looks as if it refused the key.
    if (error == 0 || monotonic_ms() + pause > end) return error;
    ::poll(nullptr, 0, pause);
  }
}

// To the server of the part; with replicas, if that fails, to that of the copy next time.
int Link::connect() {
  const std::uint32_t server = is_at_copy_ ? copy_server(server_, volume_.servers.size()) : server_;
  const ServerAddress& address = volume_.servers[server];
  int fd = -1;
  int error = connect_to(address.host, address.port, kConnectMs, fd);
  if (error == 0) {
    error = shake_hands(fd, server);
    if (error != 0) ::close(fd);
  }
  if (error == 0) fd_ = fd;
  if (error != 0 && has_copy_) is_at_copy_ = !is_at_copy_;
  return error;
}

// A server that closes after the proof refuses the key.
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

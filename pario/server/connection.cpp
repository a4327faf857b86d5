#include "pario/server/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/random.h>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::size_t kInputBytes = 64 * 1024;
static_assert(kInputBytes >= kHeaderBytes + kMaxBodyBytes, "a request without data fits");
constexpr int kHandshakeSeconds = 5;
constexpr int kSendSeconds = 30;
constexpr std::size_t kMostParked = 4'096;  // ranks that share a connection

}  // namespace

Connection::Connection(int fd, std::string peer, const Identity& identity, Ring& ring,
                       ConnectionOwner& owner)
    : fd_(fd),
      peer_(std::move(peer)),
      identity_(identity),
      ring_(ring),
      owner_(owner),
      input_(kInputBytes) {}

std::uint64_t Connection::next_number() {
  static std::uint64_t last = 0;
  return ++last;
}

Connection::~Connection() {
  ::close(fd_);
}

int Connection::start() {
  if (::getrandom(nonce_.data(), nonce_.size(), 0) != static_cast<ssize_t>(nonce_.size())) {
    return EIO;
  }
  output_.emplace_back();
  output_.back().head.append(kMagic).append(nonce_.data(), nonce_.size());
  send();
  receive();
  return 0;
}

// Reads the rest of a Write directly into its memory, and all other data into input_.
void Connection::receive() {
  if (is_receiving_ || state_ == State::Closed) return;
  io_uring_sqe* request = ring_.next(&receiving_);
  if (filling_) {
    char* memory = filling_->data.get() + filled_;
    io_uring_prep_recv(request, fd_, memory, filling_->request.data_bytes - filled_, MSG_WAITALL);
  } else {
    std::copy(input_.begin() + static_cast<std::ptrdiff_t>(begin_),
              input_.begin() + static_cast<std::ptrdiff_t>(end_), input_.begin());
    end_ -= begin_;
    begin_ = 0;
    io_uring_prep_recv(request, fd_, input_.data() + end_, input_.size() - end_, 0);
  }
  is_receiving_ = true;
}

void Connection::received(int result) {
  is_receiving_ = false;
  if (state_ == State::Closed) return check_end();
  if (result == -EINTR || result == -EAGAIN) return receive();
  if (result <= 0) {
    close();
    return check_end();
  }
  if (filling_) {
    filled_ += static_cast<std::size_t>(result);
    if (filled_ < filling_->request.data_bytes) return receive();
    owner_.execute(std::move(filling_));
  } else {
    end_ += static_cast<std::size_t>(result);
  }
  parse();
}

void Connection::parse() {
  if (state_ == State::Handshake && !take_answer()) {
    if (state_ != State::Closed) receive();
    return check_end();
  }
  while (state_ == State::Open && !filling_ && take_request()) {
  }
  if (state_ == State::Closed) return check_end();
  // If memory or the window is full, a later reply continues here.
  if (filling_ || (!is_waiting_ && !is_window_full())) receive();
}

bool Connection::take_answer() {
  if (end_ - begin_ < kAnswerBytes) return false;
  const char* answer = input_.data() + begin_;
  begin_ += kAnswerBytes;
  ProofOf of{nonce_, {}, identity_.server, identity_.volume, true};
  Proof proof{};
  std::memcpy(of.client_nonce.data(), answer + kMagic.size(), of.client_nonce.size());
  std::memcpy(proof.data(), answer + kMagic.size() + of.client_nonce.size(), proof.size());
  if (std::string_view(answer, kMagic.size()) != kMagic ||
      !is_equal(proof, make_proof(identity_.key, of))) {
    refuse(ConnectionOwner::Refused::WrongKey);
    return false;
  }
  of.by_client = false;
  const Proof mine = make_proof(identity_.key, of);
  output_.push_back({std::string(mine.data(), mine.size()), nullptr, 0});
  state_ = State::Open;
  idle_seconds_ = 0;
  send();
  return true;
}

bool Connection::is_window_full() const {
  const auto parked = static_cast<std::size_t>(parked_);
  return requests_ - parked >= kServerWindow || parked >= kMostParked;
}

bool Connection::take_request() {
  if (is_window_full() || end_ - begin_ < kHeaderBytes) return false;
  const char* bytes = input_.data() + begin_;
  Sizes sizes;
  if (!parse_sizes(std::span<const char, kHeaderBytes>(bytes, kHeaderBytes), sizes)) {
    refuse(ConnectionOwner::Refused::BadRequest);
    return false;
  }
  if (end_ - begin_ < kHeaderBytes + sizes.body) return false;
  return admit_request(sizes);
}

bool Connection::admit_request(Sizes sizes) {
  auto transfer = std::make_unique<Transfer>();
  transfer->connection = this;
  transfer->client = number_;
  transfer->bytes.assign(input_.data() + begin_, kHeaderBytes + sizes.body);
  if (!parse_request(transfer->bytes, transfer->request) ||
      (transfer->request.flags & kRemote) != 0) {
    refuse(ConnectionOwner::Refused::BadRequest);
    return false;
  }
  transfer->memory = memory_of(transfer->request);
  if (transfer->memory > 0) {
    is_waiting_ = !owner_.admit(*this, transfer->memory);
    if (is_waiting_) return false;
    transfer->data = owner_.buffers().take(transfer->memory);
  }
  begin_ += kHeaderBytes + sizes.body;
  ++requests_;
  if (sizes.data == 0) {
    owner_.execute(std::move(transfer));
    return true;
  }
  filled_ = std::min<std::size_t>(sizes.data, end_ - begin_);
  std::memcpy(transfer->data.get(), input_.data() + begin_, filled_);
  begin_ += filled_;
  if (filled_ == sizes.data) {
    owner_.execute(std::move(transfer));
  } else {
    filling_ = std::move(transfer);
  }
  return true;
}

void Connection::reply(TransferPtr transfer) {
  if (Session* session = transfer->session) {
    session->reply(std::move(transfer));
    return check_end();
  }
  Outgoing outgoing;
  outgoing.data_bytes = append_answer(*transfer, outgoing.head).data_bytes;
  outgoing.transfer = std::move(transfer);
  output_.push_back(std::move(outgoing));
  send();
}

// Sends as many replies as fit into one call.
void Connection::send() {
  if (state_ == State::Closed) {  // the peer no longer reads them
    if (is_sending_) return;
    for (Outgoing& outgoing : output_) {
      if (!outgoing.transfer) continue;
      owner_.release(outgoing.transfer->memory);
      --requests_;
    }
    output_.clear();
    return check_end();
  }
  if (is_sending_ || output_.empty()) return;
  std::size_t count = 0;
  std::size_t skipped = output_sent_;
  const auto add = [&](char* bytes, std::size_t length) {
    const std::size_t skip = std::min(skipped, length);
    skipped -= skip;
    if (length > skip) pieces_[count++] = {bytes + skip, length - skip};
  };
  for (Outgoing& outgoing : output_) {
    if (count + 2 > pieces_.size()) break;
    add(outgoing.head.data(), outgoing.head.size());
    if (outgoing.data_bytes > 0) add(outgoing.transfer->data.get(), outgoing.data_bytes);
  }
  message_ = {};
  message_.msg_iov = pieces_.data();
  message_.msg_iovlen = count;
  io_uring_prep_sendmsg(ring_.next(&sending_), fd_, &message_, MSG_NOSIGNAL | MSG_WAITALL);
  is_sending_ = true;
}

void Connection::sent(int result) {
  is_sending_ = false;
  if (result == -EINTR || result == -EAGAIN) return send();
  if (result <= 0) {
    close();
    return send();
  }
  idle_seconds_ = 0;
  output_sent_ += static_cast<std::size_t>(result);
  while (!output_.empty()) {
    Outgoing& first = output_.front();
    const std::size_t length = first.head.size() + first.data_bytes;
    if (output_sent_ < length) break;
    output_sent_ -= length;
    if (first.transfer) {
      const std::size_t memory = first.transfer->memory;
      --requests_;
      output_.pop_front();
      owner_.release(memory);
    } else {
      output_.pop_front();
    }
  }
  send();
  if (state_ == State::Open && !is_receiving_ && !is_waiting_) parse();
}

void Connection::resume() {
  if (session_) owner_.sessions().wake(*this);
  is_waiting_ = false;
  if (state_ == State::Open && !is_receiving_) parse();
}

void Connection::tick() {
  const bool is_slow = state_ == State::Handshake || is_sending_;
  idle_seconds_ = is_slow ? idle_seconds_ + 1 : 0;
  const int most = state_ == State::Handshake ? kHandshakeSeconds : kSendSeconds;
  stuck_seconds_ = session_ && session_->is_stuck() ? stuck_seconds_ + 1 : 0;
  const bool is_over = idle_seconds_ > most || stuck_seconds_ > kSendSeconds;
  if (state_ != State::Closed && is_over) refuse(ConnectionOwner::Refused::TooSlow);
}

// A client sends a second request if it could not open the first offer.
void Connection::open_session(Transfer& transfer) {
  if (session_) {
    session_->close();
    old_sessions_.push_back(std::move(session_));
  }
  std::erase_if(old_sessions_, [](const auto& session) { return session->is_idle(); });
  ChannelOffer offer;
  const Request& request = transfer.request;
  if (request.mode == static_cast<std::uint32_t>(ChannelKind::None)) {
    owner_.sessions().dismiss(*this);
    return owner_.fell_back(static_cast<int>(std::min<std::uint64_t>(request.number, 4'095)),
                            peer_);
  }
  transfer.answer.error = make_session(request, offer);
  if (transfer.answer.error != 0) return;
  put(transfer.answer.body, offer);
  owner_.sessions().wake(*this);
}

int Connection::make_session(const Request& request, ChannelOffer& offer) {
  EndpointPtr endpoint;
  std::uint64_t key = 0;
  if (!owner_.sessions().admit(*this)) return EAGAIN;
  if (::getrandom(&key, sizeof key, 0) != sizeof key) return EIO;
  if (request.mode == static_cast<std::uint32_t>(ChannelKind::Near)) {
    if (const int error = make_near(key, endpoint, offer)) return error;
  } else {
    AddressBytes own{};
    UdpSocket socket;
    const auto asked = static_cast<std::uint32_t>(request.number >> 48);
    if (!is_payload(asked)) return EINVAL;
    offer.payload = std::min(asked, payload_of_path(fd_));
    int error = own_host(fd_, own);
    if (error == 0) error = open_udp_socket(own, offer.payload, socket);
    if (error != 0) return error;
    offer.key = key;
    offer.address = pack_address(socket.address);
    const AddressBytes peer = unpack_address(request.number);
    error = make_udp(std::move(socket), {key, offer.payload}, kServerRank, peer, endpoint);
    if (error != 0) return error;
  }
  session_ = std::make_unique<Session>(std::move(endpoint), ring_, *this, owner_);
  return 0;
}

void Connection::run_session() {
  if (!session_) return check_end();  // a closed session may have ended
  const Session::Fault fault = session_->turn();
  if (fault == Session::Fault::BadRequest) refuse(ConnectionOwner::Refused::BadRequest);
  if (fault == Session::Fault::Broken) close();
  check_end();
}

void Connection::refuse(ConnectionOwner::Refused why) {
  owner_.refused(why, peer_);
  close();
}

// The shutdown ends the operations in flight; their completions lead to check_end().
void Connection::close() {
  if (state_ == State::Closed) return;
  state_ = State::Closed;
  ::shutdown(fd_, SHUT_RDWR);
  if (session_) session_->close();
  owner_.closed(*this);
  if (filling_ && !is_receiving_) {
    owner_.release(filling_->memory);
    filling_.reset();
    --requests_;
  }
  send();
}

void Connection::check_end() {
  if (state_ != State::Closed || is_receiving_ || is_sending_ || is_ended_) return;
  if (filling_) {
    owner_.release(filling_->memory);
    filling_.reset();
    --requests_;
  }
  if (requests_ > 0 || (session_ && !session_->is_idle())) return;
  const auto is_idle = [](const auto& session) { return session->is_idle(); };
  if (!std::ranges::all_of(old_sessions_, is_idle)) return;
  is_ended_ = true;
  owner_.ended(*this);
}

}  // namespace score::pario

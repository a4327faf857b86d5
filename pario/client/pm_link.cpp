#include "pario/client/pm_link.hpp"

#include "pario/client/socket_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 40;
constexpr std::int64_t kGreetMs = 3'000;
// This is less than a datagram: three messages and their acknowledgements take longer than TCP.
constexpr std::size_t kLeastByUdp = std::size_t{64} << 10;

using Exchange = PmLink::Exchange;

int ask(Exchange& exchange, ChannelKind kind, std::uint64_t address, ChannelOffer& offer) {
  std::string body;
  if (const int error = exchange.open_channel(kind, address, body)) return error;
  return parse_body(body, offer) ? 0 : EPROTO;
}

int reach_near(Exchange& exchange, EndpointPtr& endpoint) {
  ChannelOffer offer;
  const int error = ask(exchange, ChannelKind::Near, 0, offer);
  return error != 0 ? error : open_near(offer, endpoint);
}

int reach_by_udp(int fd, Exchange& exchange, EndpointPtr& endpoint) {
  AddressBytes own{};
  UdpSocket socket;
  ChannelOffer offer;
  const std::uint32_t payload = payload_of_path(fd);
  if (const int error = own_host(fd, own)) return error;
  if (const int error = open_udp_socket(own, payload, socket)) return error;
  const std::uint64_t number = std::uint64_t{payload} << 48 | pack_address(socket.address);
  if (const int error = ask(exchange, ChannelKind::Udp, number, offer)) return error;
  if (!is_payload(offer.payload) || offer.payload > payload) return EPROTO;
  const AddressBytes peer = unpack_address(offer.address);
  return make_udp(std::move(socket), {offer.key, offer.payload}, kClientRank, peer, endpoint);
}

}  // namespace

bool read_transport(Transport& transport) {
  const char* value = std::getenv("PARIO_TRANSPORT");
  const std::string_view text = value != nullptr ? value : "";
  if (text.empty()) return true;
  transport = text == "pm"    ? Transport::Pm
              : text == "udp" ? Transport::Udp
              : text == "tcp" ? Transport::Tcp
                              : Transport::Usual;
  return transport != Transport::Usual;
}

int PmLink::open(int fd, Transport transport, Exchange& exchange, std::unique_ptr<PmLink>& made) {
  made.reset();
  const bool is_near = is_same_host(fd) && transport != Transport::Udp;
  if (transport == Transport::Tcp || (transport == Transport::Usual && !is_near)) return 0;
  EndpointPtr endpoint;
  int error = is_near ? reach_near(exchange, endpoint) : ESRCH;
  // The server has the same address, but a different user or a different view of processes.
  const bool is_udp = error == ESRCH && transport != Transport::Usual;
  if (is_udp) error = reach_by_udp(fd, exchange, endpoint);
  if (error != 0) return error;
  const int wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) return errno;
  made.reset(new PmLink(std::move(endpoint), wake_fd, is_udp ? kLeastByUdp : 0));
  if (is_udp) error = made->greet(fd);
  if (error != 0) made.reset();
  return error;
}

// Checks that datagrams pass in both directions before anything depends on it.
int PmLink::greet(int fd) {
  std::string bytes;
  append_request({.op = Op::OpenChannel, .mode = static_cast<std::uint32_t>(ChannelKind::Udp)},
                 bytes);
  std::unique_lock lock(mutex_);
  pipe_.push(std::move(bytes));
  const std::int64_t end = monotonic_ms() + kGreetMs;
  std::string input;
  while (input.size() < kHeaderBytes) {
    endpoint_->progress();
    pipe_.flush();
    const bool has_come = pipe_.receive(input);
    if (pipe_.is_broken()) return EPROTO;
    if (has_come) continue;
    if (monotonic_ms() >= end) return ETIMEDOUT;
    if (rest(fd, end, lock)) return ECONNRESET;
  }
  Reply reply;
  const bool is_good =
      parse_reply(std::span<const char, kHeaderBytes>(input.data(), kHeaderBytes), reply) &&
      reply.error == 0 && reply.body_bytes == 0 && reply.data_bytes == 0;
  return is_good && input.size() == kHeaderBytes ? 0 : EPROTO;
}

PmLink::PmLink(EndpointPtr endpoint, int wake_fd, std::size_t least_bytes)
    : endpoint_(std::move(endpoint)),
      pipe_(*endpoint_, kServerRank),
      wake_fd_(wake_fd),
      least_bytes_(least_bytes) {}

PmLink::~PmLink() {
  endpoint_.reset();
  ::close(wake_fd_);
}

// The memory from the first to the last byte is one region, because the pieces lie in one buffer of
// the caller.
int PmLink::send(Request request, const std::vector<iovec>& memory) {
  auto begin = UINTPTR_MAX;
  std::uintptr_t end = 0;
  std::size_t total = 0;
  for (const iovec& piece : memory) {
    total += piece.iov_len;
    const auto start = reinterpret_cast<std::uintptr_t>(piece.iov_base);
    begin = std::min(begin, start);
    end = std::max(end, start + piece.iov_len);
  }
  if (memory.size() != request.extents.size() || begin >= end || end - begin > kMostMemory ||
      total < least_bytes_) {
    return ENOSPC;
  }
  for (const iovec& piece : memory) {
    request.places.push_back(reinterpret_cast<std::uintptr_t>(piece.iov_base) - begin);
  }
  const std::scoped_lock lock(mutex_);
  stop_sleeping();
  drop_later();
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
  const auto* address = reinterpret_cast<const void*>(begin);
  if (endpoint_->add_region(address, end - begin, region, offset) != 0) return ENOSPC;
  request.flags |= kRemote;
  request.remote = {region, endpoint_->segment().region(region).nonce, offset, end - begin};
  regions_.emplace(request.tag, region);
  std::string bytes;
  append_request(request, bytes);
  pipe_.push(std::move(bytes));
  pipe_.flush();  // the thread that waits sends the rest
  return 0;
}

// Other threads may use the endpoint now, so the waiting thread must check again.
void PmLink::stop_sleeping() {
  if (!is_asleep_) return;
  endpoint_->after_select();
  is_asleep_ = false;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t sent = ::write(wake_fd_, &one, sizeof one);
}

void PmLink::drop(std::uint32_t region) {
  if (endpoint_->drop_region(region) == EBUSY) dropped_.push_back(region);
}

void PmLink::drop_later() {
  for (const std::uint32_t region : std::exchange(dropped_, {})) drop(region);
}

bool PmLink::take_replies(std::vector<Arrived>& arrived) {
  while (input_.size() >= kHeaderBytes) {
    Arrived one;
    if (!parse_reply(std::span<const char, kHeaderBytes>(input_.data(), kHeaderBytes), one.reply)) {
      return false;
    }
    const std::size_t length = kHeaderBytes + one.reply.body_bytes;
    if (input_.size() < length) break;
    one.body.assign(input_, kHeaderBytes, one.reply.body_bytes);
    input_.erase(0, length);
    const auto found = regions_.find(one.reply.tag);
    if (found == regions_.end()) return false;
    drop(found->second);
    regions_.erase(found);
    arrived.push_back(std::move(one));
  }
  return true;
}

// Returns Socket if nothing has arrived.
PmLink::News PmLink::look(std::vector<Arrived>& arrived) {
  endpoint_->progress();
  pipe_.flush();
  while (pipe_.receive(input_)) {
    if (!take_replies(arrived)) return News::Broken;
  }
  if (!arrived.empty()) return News::Replies;
  return pipe_.is_broken() ? News::Broken : News::Socket;
}

PmLink::News PmLink::wait(int fd, std::vector<Arrived>& arrived) {
  std::unique_lock lock(mutex_);
  const std::int64_t end = monotonic_ms() + kSilenceMs;
  for (;;) {
    if (const News news = look(arrived); news != News::Socket) return news;
    if (monotonic_ms() >= end) return News::Silent;
    if (rest(fd, end, lock)) return News::Socket;
  }
}

bool PmLink::rest(int fd, std::int64_t end_ms, std::unique_lock<std::mutex>& lock) {
  pm::Endpoint::Sleep until;
  if (endpoint_->prepare_sleep(-1, pm::ContextState::Rests, until) != 0) return false;
  std::int64_t timeout_us = until.timeout_us;
  if (pipe_.has_output() && (timeout_us < 0 || timeout_us > kRoomLookUs)) timeout_us = kRoomLookUs;
  is_asleep_ = true;
  lock.unlock();
  std::array<pollfd, 4> news{
      {{fd, POLLIN, 0}, until.news[0], until.news[1], {wake_fd_, POLLIN, 0}}};
  const std::int64_t left = std::max<std::int64_t>(end_ms - monotonic_ms(), 0);
  const std::int64_t most = timeout_us < 0 ? left : std::min((timeout_us + 999) / 1'000, left);
  ::poll(news.data(), news.size(), static_cast<int>(most));
  lock.lock();
  if (is_asleep_) endpoint_->after_select();
  is_asleep_ = false;
  std::uint64_t drained = 0;
  if (news[3].revents != 0) {
    [[maybe_unused]] const ssize_t got = ::read(wake_fd_, &drained, sizeof drained);
  }
  return news[0].revents != 0;
}

}  // namespace score::pario

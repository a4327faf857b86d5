#include "scored/job/scratch/statistics.hpp"

#include "base/text.hpp"

#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

// All messages of this exchange are shorter than a fresh socket's buffer, so an incomplete write is
// a failure.

namespace score::shepherd {

namespace {

constexpr std::size_t kReadBytes = 4'096;

std::optional<sockaddr_in> address_of(const pario::ServerAddress& server) {
  sockaddr_in address{};
  const auto port = base::parse_number<std::uint16_t>(server.port);
  if (!port || inet_pton(AF_INET, server.host.c_str(), &address.sin_addr) != 1) return std::nullopt;
  address.sin_family = AF_INET;
  address.sin_port = htons(*port);
  return address;
}

}  // namespace

void ServerStatistics::ask() {
  if (!exchange_) return connect();
  // The previous question has timed out; the next call connects again.
  if (!exchange_->is_ready() || !send(exchange_->question())) fail();
}

void ServerStatistics::connect() {
  const auto address = address_of(volume_.servers[server_]);
  socket_ = base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  pario::Nonce nonce{};
  const bool is_random =
      getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size());
  if (!address || !socket_ || !is_random) return fail();
  const auto* generic = reinterpret_cast<const sockaddr*>(&*address);
  const bool connects =
      ::connect(socket_.get(), generic, sizeof *address) == 0 || errno == EINPROGRESS;
  if (!connects) return fail();
  auto added = loop_.add(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_ready(); });
  if (!added) return fail();
  exchange_.emplace(volume_, server_, nonce);
}

void ServerStatistics::close() {
  if (socket_) loop_.remove(socket_.get());
  socket_.reset();
  exchange_.reset();
}

void ServerStatistics::fail() {
  close();
  handler_(std::nullopt);
}

void ServerStatistics::on_ready() {
  std::array<char, kReadBytes> buffer;
  const ssize_t got = ::read(socket_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return fail();
  const auto reply = exchange_->take({buffer.data(), static_cast<std::size_t>(got)});
  if (!reply || !send(*reply)) return fail();
  if (const auto answer = exchange_->answer()) handler_(answer);
}

bool ServerStatistics::send(std::string_view bytes) {
  return bytes.empty() || ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                              static_cast<ssize_t>(bytes.size());
}

}  // namespace score::shepherd

#include "scored/job/scratch/helper_client.hpp"

#include "base/errc.hpp"
#include "scored/job/scratch/helper_wire.hpp"

#include <cerrno>
#include <cstring>
#include <span>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace score::shepherd {

namespace {

base::Result<base::UniqueFd> file_of(const std::vector<std::string>& words) {
  base::UniqueFd file(memfd_create("arguments", MFD_CLOEXEC));
  if (!file) return base::fail(base::errno_code(errno), "cannot make a file of arguments");
  std::string text;
  for (const auto& word : words) text.append(word).push_back('\0');
  if (auto written = base::write_all(file.get(), text); !written) return written.error();
  if (lseek(file.get(), 0, SEEK_SET) != 0) return base::fail(base::errno_code(errno), "lseek");
  return file;
}

}  // namespace

HelperClient::HelperClient(EventLoop& loop, base::UniqueFd socket)
    : loop_(loop), socket_(std::move(socket)) {
  if (!socket_) return;
  auto ready = base::set_nonblocking(socket_.get(), true);
  if (ready) ready = loop_.add(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_reply(); });
  if (!ready) socket_.reset();
}

HelperClient::~HelperClient() {
  if (socket_) loop_.remove(socket_.get());
}

base::Status HelperClient::start(const Order& order, Started started) {
  if (!socket_) return base::fail(base::Errc::Closed, "cannot start helpers of this job");
  const auto words = file_of(order.arguments);
  if (!words) return words.error();
  HelperRequest request;
  std::vector<int> fds{words->get(), order.errors};
  if (order.extra >= 0) {
    request.has_extra = 1;
    fds.push_back(order.extra);
  }
  fds.push_back(order.ready);
  auto sent = base::send_with_fds(socket_.get(), std::as_bytes(std::span(&request, 1)), fds);
  if (sent) asked_.push_back(std::move(started));
  return sent;
}

void HelperClient::on_reply() {
  auto message = base::receive_with_fds(socket_.get(), sizeof(HelperReply));
  if (!message && message.error().code() == std::errc::resource_unavailable_try_again) return;
  HelperReply reply;
  if (!message || message->bytes.size() != sizeof reply || asked_.empty()) {
    return give_up(base::fail(base::Errc::Closed, "the process that starts helpers has ended"));
  }
  std::memcpy(&reply, message->bytes.data(), sizeof reply);
  const auto started = std::move(asked_.front());
  asked_.pop_front();
  if (reply.error != 0 || message->fds.size() != 1) {
    const int error = reply.error != 0 ? reply.error : EPROTO;
    return started(base::fail(base::errno_code(error), "cannot start the program"));
  }
  started(base::SpawnedProcess{reply.pid, std::move(message->fds[0])});
}

void HelperClient::give_up(const base::Error& why) {
  loop_.remove(socket_.get());
  socket_.reset();
  for (const auto& started : std::exchange(asked_, {})) started(why);
  if (lost_) lost_();
}

}  // namespace score::shepherd

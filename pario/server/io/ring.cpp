#include "pario/server/io/ring.hpp"

#include <array>
#include <cerrno>
#include <vector>

namespace score::pario {

Ring::~Ring() {
  if (is_open_) io_uring_queue_exit(&ring_);
}

int Ring::open(unsigned entries) {
  // The thread that waits for completions processes them (Linux 5.19); older kernels use the
  // default.
  int result = 0;
  for (const unsigned flags : {IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER, 0U}) {
    result = io_uring_queue_init(entries, &ring_, flags);
    is_open_ = result == 0;
    if (is_open_) return 0;
    if (result != -EINVAL) break;
  }
  open_plain();
  return -result;
}

io_uring_sqe* Ring::next(Completion* completion) {
  io_uring_sqe* request = plain_ ? plain_->next() : io_uring_get_sqe(&ring_);
  while (request == nullptr) {  // the queue is full: submit it
    io_uring_submit(&ring_);
    request = io_uring_get_sqe(&ring_);
  }
  io_uring_sqe_set_data(request, completion);
  return request;
}

int Ring::wait(std::int64_t timeout_us) {
  if (timeout_us < 0) return io_uring_submit_and_wait(&ring_, 1);
  if (timeout_us == 0) return io_uring_submit_and_get_events(&ring_);
  __kernel_timespec time{timeout_us / 1'000'000, timeout_us % 1'000'000 * 1'000};
  io_uring_cqe* first = nullptr;
  return io_uring_submit_and_wait_timeout(&ring_, &first, 1, &time, nullptr);
}

int Ring::turn_plain(std::int64_t timeout_us) {
  std::vector<PlainIo::Result> results;
  const int error = plain_->turn(timeout_us, results);
  for (const auto& [data, value] : results) {
    if (data != 0) reinterpret_cast<Completion*>(data)->complete(value);
  }
  return error;
}

int Ring::turn(std::int64_t timeout_us) {
  if (plain_) return turn_plain(timeout_us);
  const int result = wait(timeout_us);
  const bool is_usual =
      result == -EINTR || result == -EAGAIN || result == -EBUSY || result == -ETIME;
  if (result < 0 && !is_usual) return -result;
  std::array<io_uring_cqe*, 128> batch;
  unsigned count = io_uring_peek_batch_cqe(&ring_, batch.data(), batch.size());
  for (unsigned i = 0; i < count; ++i) {
    auto* completion = static_cast<Completion*>(io_uring_cqe_get_data(batch[i]));
    const int value = batch[i]->res;
    if (completion != nullptr) completion->complete(value);
  }
  io_uring_cq_advance(&ring_, count);
  return 0;
}

}  // namespace score::pario

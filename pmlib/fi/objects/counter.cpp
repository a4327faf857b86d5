#include "pmlib/fi/objects/no_ops.hpp"
#include "pmlib/fi/objects/objects.hpp"

#include <cerrno>
#include <utility>

namespace score::pm::fi {

namespace {

int close_counter(fid* f) {
  delete &object_of<Counter>(f);
  return 0;
}

int control_counter(fid* f, int command, void* argument) {
  if (command != FI_GETWAIT) return -FI_ENOSYS;
  *static_cast<int*>(argument) = object_of<Counter>(f).domain().link().wait_set().fd();
  return 0;
}

std::uint64_t read(fid_cntr* c) {
  return static_cast<Counter*>(c)->read();
}

std::uint64_t read_error(fid_cntr* c) {
  return static_cast<Counter*>(c)->read_error();
}

int add(fid_cntr* c, std::uint64_t n) {
  static_cast<Counter*>(c)->add(n);
  return 0;
}

int set(fid_cntr* c, std::uint64_t n) {
  static_cast<Counter*>(c)->set(n);
  return 0;
}

int wait(fid_cntr* c, std::uint64_t threshold, int timeout) {
  return static_cast<Counter*>(c)->wait(threshold, timeout);
}

int add_error(fid_cntr* c, std::uint64_t n) {
  static_cast<Counter*>(c)->add_error(n);
  return 0;
}

int set_error(fid_cntr* c, std::uint64_t n) {
  static_cast<Counter*>(c)->set_error(n);
  return 0;
}

fi_ops counter_fid_ops = {sizeof(fi_ops), close_counter, no_op,  control_counter,
                          no_op,          nullptr,       nullptr};
fi_ops_cntr counter_ops = {sizeof(fi_ops_cntr), read,     read_error, add, set, wait,
                           add_error,           set_error};

}  // namespace

Counter::Counter(Domain& domain, const fi_cntr_attr&, void* context)
    : fid_cntr{{FI_CLASS_CNTR, context, &counter_fid_ops}, &counter_ops}, domain_(domain) {
  ++domain_.users;
}

Counter::~Counter() {
  --domain_.users;
}

std::uint64_t Counter::read() {
  return read(value_);
}

std::uint64_t Counter::read_error() {
  return read(errors_);
}

std::uint64_t Counter::read(const std::atomic<std::uint64_t>& number) {
  Link& link = domain_.link();
  const auto read_now = [&] {
    Guard guard(link);
    link.progress();
    return number.load(std::memory_order_relaxed);
  };
  if (link.rest().is_due()) [[unlikely]]
    link.rest().begin_poll();
  const std::uint64_t before = read_now();
  if (!link.rest().is_due()) [[likely]]
    return before;
  // The change may also come from another thread's progress.
  const bool is_news =
      link.rest().take([&] { return number.load(std::memory_order_relaxed) != before; });
  return is_news ? read_now() : before;
}

int Counter::wait(std::uint64_t threshold, int timeout_ms) {
  const std::uint64_t deadline = deadline_of(timeout_ms);
  const std::uint64_t errors = errors_.load(std::memory_order_relaxed);
  for (;;) {
    if (read() >= threshold) return 0;
    if (read_error() != errors) return -FI_EAVAIL;
    const auto is_over = [&] { return value_ >= threshold || errors_ != errors; };
    if (!wait_for_news(domain_.link(), deadline, is_over)) {
      return read() >= threshold ? 0 : -FI_ETIMEDOUT;
    }
  }
}

bool Counter::poll_once() {
  Guard guard(domain_.link());
  domain_.link().progress();
  const std::uint64_t before = std::exchange(polled_, value_ + errors_);
  return polled_ != before;
}

int Counter::try_wait() {
  Guard guard(domain_.link());
  return domain_.link().prepare_to_wait() ? 0 : -FI_EAGAIN;
}

}  // namespace score::pm::fi

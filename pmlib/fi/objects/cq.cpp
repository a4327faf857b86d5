#include "pmlib/fi/objects/no_ops.hpp"
#include "pmlib/fi/objects/objects.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <utility>

namespace score::pm::fi {

namespace {

constexpr std::size_t kFirstSize = 256;
constexpr std::uint64_t kUsPerMs = 1000;

int close_cq(fid* f) {
  delete &object_of<Cq>(f);
  return 0;
}

int control_cq(fid* f, int command, void* argument) {
  if (command == FI_GETWAIT) {
    *static_cast<int*>(argument) = object_of<Cq>(f).domain().link().wait_set().fd();
    return 0;
  }
  if (command != FI_GETWAITOBJ) return -FI_ENOSYS;
  *static_cast<fi_wait_obj*>(argument) = FI_WAIT_FD;
  return 0;
}

ssize_t read(fid_cq* cq, void* buffer, std::size_t count) {
  return static_cast<Cq*>(cq)->read(buffer, count, nullptr);
}

ssize_t read_from(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* sources) {
  return static_cast<Cq*>(cq)->read(buffer, count, sources);
}

ssize_t read_error(fid_cq* cq, fi_cq_err_entry* entry, std::uint64_t) {
  if (entry == nullptr) return -FI_EINVAL;
  return static_cast<Cq*>(cq)->read_error(*entry);
}

ssize_t wait_read(fid_cq* cq, void* buffer, std::size_t count, const void*, int timeout) {
  return static_cast<Cq*>(cq)->wait_and_read(buffer, count, nullptr, timeout);
}

ssize_t wait_read_from(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* sources, const void*,
                       int timeout) {
  return static_cast<Cq*>(cq)->wait_and_read(buffer, count, sources, timeout);
}

int signal(fid_cq* cq) {
  static_cast<Cq*>(cq)->signal();
  return 0;
}

const char* error_text(fid_cq*, int error, const void*, char* buffer, std::size_t length) {
  const char* text = std::strerror(error);
  if (buffer != nullptr && length > 0) {
    const std::size_t n = std::min(std::strlen(text), length - 1);
    std::copy_n(text, n, buffer);
    buffer[n] = '\0';
  }
  return text;
}

fi_ops cq_fid_ops = {sizeof(fi_ops), close_cq, no_op, control_cq, no_op, nullptr, nullptr};
fi_ops_cq cq_ops = {sizeof(fi_ops_cq), read,           read_from, read_error,
                    wait_read,         wait_read_from, signal,    error_text};

// The formats are prefixes of each other.
std::size_t entry_bytes(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_MSG:
      return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
      return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
      return sizeof(fi_cq_tagged_entry);
    default:
      return sizeof(fi_cq_entry);
  }
}

}  // namespace

std::uint64_t deadline_of(int timeout_ms) {
  if (timeout_ms < 0) return UINT64_MAX;
  return Link::now_us() + static_cast<std::uint64_t>(timeout_ms) * kUsPerMs;
}

bool wait_for_news(Link& link, std::uint64_t deadline_us, const std::function<bool()>& has_news) {
  const std::uint64_t now = Link::now_us();
  if (now >= deadline_us) return false;
  {
    Guard guard(link);
    if (has_news() || !link.prepare_to_wait() || has_news()) return true;
    link.wait_set().add_sleeper();
  }
  int timeout_ms = -1;
  if (deadline_us != UINT64_MAX) {
    timeout_ms =
        static_cast<int>(std::min<std::uint64_t>((deadline_us - now) / kUsPerMs + 1, 1000));
  }
  pollfd ready{link.wait_set().fd(), POLLIN, 0};
  poll(&ready, 1, timeout_ms);
  {
    Guard guard(link);
    link.wait_set().remove_sleeper();
  }
  return deadline_us == UINT64_MAX || Link::now_us() < deadline_us;
}

Cq::Cq(Domain& domain, const fi_cq_attr& attr, void* context)
    : fid_cq{{FI_CLASS_CQ, context, &cq_fid_ops}, &cq_ops},
      domain_(domain),
      format_(attr.format),
      ring_(std::bit_ceil(std::max(attr.size, kFirstSize))) {
  ++domain_.users;
}

Cq::~Cq() {
  --domain_.users;
}

void Cq::push(const Completion& completion) {
  if (head_ == tail_) head_ = tail_ = 0;  // the first place is still in the cache
  if (tail_ - head_ == ring_.size()) [[unlikely]]
    grow();
  ring_[tail_++ & (ring_.size() - 1)] = completion;
  domain_.link().wait_set().wake_sleepers();
}

void Cq::grow() {
  std::vector<Completion> larger(ring_.size() * 2);
  const std::size_t n = tail_ - head_;
  for (std::size_t i = 0; i < n; ++i) larger[i] = ring_[(head_ + i) & (ring_.size() - 1)];
  ring_.swap(larger);
  head_ = 0;
  tail_ = n;
}

void Cq::push(const CompletionError& failure) {
  failures_.push_back(failure);
  domain_.link().wait_set().wake_sleepers();
}

void Cq::write_out(std::byte*& to, const Completion& c) const {
  const fi_cq_tagged_entry entry{c.context, c.flags, c.length, c.buffer, c.data, c.tag};
  if (format_ == FI_CQ_FORMAT_TAGGED) [[likely]] {  // the size is known here, so this needs no call
    std::memcpy(to, &entry, sizeof entry);
    to += sizeof entry;
    return;
  }
  std::memcpy(to, &entry, entry_bytes(format_));
  to += entry_bytes(format_);
}

void Cq::poll_link() {
  Link& link = domain_.link();
  link.progress();
  if (has_news()) return;
  for (unsigned polls = link.silence().polls_before_giving_up(); polls > 0; --polls) {
    link.progress();
    if (has_news()) return;
  }
  link.silence().gave_up();
}

ssize_t Cq::read(void* buffer, std::size_t count, fi_addr_t* sources) {
  Link& link = domain_.link();
  if (link.rest().is_due()) [[unlikely]]
    link.rest().begin_poll();
  const ssize_t n = read_once(buffer, count, sources);
  if (n != -FI_EAGAIN || !link.rest().is_due()) [[likely]]
    return n;
  const bool is_news = link.rest().take([this] { return has_news() || is_signalled_; });
  return is_news ? read_once(buffer, count, sources) : n;
}

ssize_t Cq::read_once(void* buffer, std::size_t count, fi_addr_t* sources) {
  Guard guard(domain_.link());
  if (!has_news()) {
    poll_link();
  } else if (count == 0) {
    domain_.link().progress();
  }
  if (!failures_.empty()) return -FI_EAVAIL;
  if (head_ == tail_) return -FI_EAGAIN;
  auto* to = static_cast<std::byte*>(buffer);
  std::size_t n = 0;
  for (; n < count && head_ != tail_; ++n) {
    const Completion& completion = ring_[head_++ & (ring_.size() - 1)];
    write_out(to, completion);
    if (sources == nullptr) continue;
    sources[n] =
        completion.av != nullptr ? completion.av->address_of(completion.from) : FI_ADDR_NOTAVAIL;
  }
  return static_cast<ssize_t>(n);
}

// The application has set aside err_data_size bytes for the address of an unknown sender, or gets a
// pointer to ours if that is 0. Entries of before 1.5 end before these fields, but an application
// that uses them does not ask for FI_SOURCE_ERR.
void Cq::give_source(fi_cq_err_entry& entry, const std::string& source) {
  if (source.empty()) return;
  last_source_ = source;
  if (entry.err_data_size > 0 && entry.err_data != nullptr) {
    const std::size_t n = std::min(entry.err_data_size, last_source_.size());
    std::memcpy(entry.err_data, last_source_.data(), n);
    entry.err_data_size = n;
    return;
  }
  entry.err_data = last_source_.data();
  entry.err_data_size = last_source_.size();
}

bool Cq::poll_once() {
  Guard guard(domain_.link());
  domain_.link().progress();
  return has_news();
}

// The entry has grown at its end over the versions. Fields that the application's version lacks are
// not written.
ssize_t Cq::read_error(fi_cq_err_entry& entry) {
  Guard guard(domain_.link());
  if (failures_.empty()) return -FI_EAGAIN;
  const CompletionError f = std::move(failures_.front());
  failures_.pop_front();
  give_source(entry, f.source);
  entry.op_context = f.completion.context;
  entry.flags = f.completion.flags;
  entry.len = f.completion.length;
  entry.buf = f.completion.buffer;
  entry.data = f.completion.data;
  entry.tag = f.completion.tag;
  entry.olen = f.missing;
  entry.err = f.error;
  entry.prov_errno = f.error;
  return 1;
}

ssize_t Cq::wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources, int timeout_ms) {
  const std::uint64_t deadline = deadline_of(timeout_ms);
  for (;;) {
    const ssize_t n = read_once(buffer, count, sources);
    if (n != -FI_EAGAIN) return n;
    if (is_signalled_.exchange(false)) return -FI_EAGAIN;
    const auto is_over = [this] { return has_news() || is_signalled_; };
    if (!wait_for_news(domain_.link(), deadline, is_over)) {
      return read_once(buffer, count, sources);
    }
  }
}

int Cq::try_wait() {
  Guard guard(domain_.link());
  return !has_news() && domain_.link().prepare_to_wait() && !has_news() ? 0 : -FI_EAGAIN;
}

void Cq::signal() {
  is_signalled_ = true;
  domain_.link().wait_set().wake();
}

}  // namespace score::pm::fi

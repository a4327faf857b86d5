// The provider's objects as libfabric sees them: each begins with the C struct that applications
// hold, so a pointer to one is a pointer to the other. Functions return 0 or a count, or a negative
// errno.
#pragma once

#include "pmlib/fi/link/link.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace score::pm::fi {

constexpr std::size_t kMaxIov = 4;
constexpr std::size_t kMaxRemoteIov = 4;  // of a read or write; of an atomic 1
constexpr std::size_t kMaxMrIov = 1;
constexpr std::size_t kInjectBytes = 32 << 10;
// Under way of an endpoint, then FI_EAGAIN.
constexpr std::size_t kMostRequests = 4096;
constexpr std::size_t kMostCopied = 8 << 20;  // bytes that requests keep

// The object that begins with `fid`.
template <class T>
T& object_of(fid* f) {
  return *static_cast<T*>(reinterpret_cast<typename T::Base*>(f));
}

// --- domain ------------------------------------------------------------------------------------

class Mr;
class Counter;

class Domain : public fid_domain {
 public:
  using Base = fid_domain;

  // `ops` opens what belongs to a domain, and outlives it; null if nothing is opened through it.
  Domain(std::shared_ptr<Link> link, const fi_info& info, void* context,
         fi_ops_domain* ops = nullptr);
  ~Domain();

  Link& link() { return *link_; }

  // Memory that [address, address + length) of `key` names; empty with an errno if it may not be
  // used for `access`. A length of 0 may be anywhere.
  int locate(std::uint64_t key, std::uint64_t address, std::uint64_t length, std::uint64_t access,
             std::span<std::byte>& memory) const;
  int register_memory(const fi_mr_attr& attr, std::uint64_t flags, fid_mr** region);

  // Of remote writes to the memory that `key` names; null if there is none, or no such memory.
  Counter* counter_of(std::uint64_t key) const;

  void forget(std::uint64_t key) { memory_.erase(key); }

  // A name in the format of the domain's fi_info: its bytes, or a string and its end.
  std::string address_of(const Name& name) const;
  // False if `address` is none in that format.
  bool read(const void* address, Name& name) const;

  // Addresses are strings.
  bool uses_text() const { return uses_text_; }

  std::atomic<int> users{0};

 private:
  void run();

  std::shared_ptr<Link> link_;
  bool uses_addresses_;
  bool makes_keys_;
  bool uses_text_;
  std::uint64_t next_key_ = 1;
  std::unordered_map<std::uint64_t, Mr*> memory_;
  std::atomic<bool> stops_{false};
  std::thread thread_;  // with FI_PROGRESS_AUTO
};

class Mr : public fid_mr {
 public:
  using Base = fid_mr;

  Mr(Domain& domain, const fi_mr_attr& attr, std::uint64_t key, bool uses_addresses);

  Domain& domain;
  std::byte* start;
  std::uint64_t length;
  std::uint64_t access;
  bool uses_addresses;
  Counter* counter = nullptr;  // of remote writes
};

class Av : public fid_av {
 public:
  using Base = fid_av;

  Av(Domain& domain, void* context);
  ~Av();

  // False if there is no such peer.
  bool find(fi_addr_t address, PortName& port) const {
    if (address >= entries_.size()) return false;
    port = entries_[address];
    return port.peer != kRemoved;
  }

  // FI_ADDR_NOTAVAIL if it was never inserted.
  fi_addr_t address_of(PortName port) const;
  // The number of names that were inserted; if that is 0, the first one's fault. `errors`: of each
  // name, or null.
  int insert(const void* names, std::size_t count, fi_addr_t* addresses, int* errors);
  int remove(const fi_addr_t* addresses, std::size_t count);
  int lookup(fi_addr_t address, void* name, std::size_t* length) const;

  const Domain& domain() const { return domain_; }

 private:
  static constexpr std::uint32_t kRemoved = UINT32_MAX;

  int insert_one(const void* name, fi_addr_t* address);

  Domain& domain_;
  std::vector<PortName> entries_;
  std::vector<Name> names_;
  std::unordered_map<std::uint64_t, fi_addr_t> reverse_;
};

// --- completions -------------------------------------------------------------------------------

struct Completion {
  void* context = nullptr;
  std::uint64_t flags = 0;
  std::size_t length = 0;
  void* buffer = nullptr;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;
  PortName from;
  const Av* av = nullptr;  // that knows `from`; null: no source
};

struct Failure {
  Completion completion;
  int error = 0;
  std::size_t missing = 0;  // bytes that did not fit
  std::string source{};     // address of the sender, if that is what is reported
};

class Cq : public fid_cq {
 public:
  using Base = fid_cq;

  Cq(Domain& domain, const fi_cq_attr& attr, void* context);
  ~Cq();

  void push(const Completion& completion);
  void push(const Failure& failure);
  // Takes at most `count` completions, after some progress if there are none.
  ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources);
  ssize_t read_error(fi_cq_err_entry& entry);
  ssize_t wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources, int timeout_ms);
  // 0 if one may sleep on the descriptor, -FI_EAGAIN if there is something to read.
  int try_wait();
  void signal();

  Domain& domain() { return domain_; }

  // After some progress.
  bool poll_once();

 private:
  bool has_news() const { return head_ != tail_ || !failures_.empty(); }

  // read(), without a rest of a thread that polls for long.
  ssize_t read_once(void* buffer, std::size_t count, fi_addr_t* sources);

  [[gnu::noinline]] void grow();
  void look();
  void give_source(fi_cq_err_entry& entry, const std::string& source);
  void write_out(std::byte*& to, const Completion& completion) const;

  Domain& domain_;
  fi_cq_format format_;
  bool can_wait_;
  std::vector<Completion> ring_;  // size is a power of two
  std::size_t head_ = 0, tail_ = 0;
  std::deque<Failure> failures_;
  std::string last_source_;  // of the failure that was read last
  std::atomic<bool> is_signalled_{false};
};

class Counter : public fid_cntr {
 public:
  using Base = fid_cntr;

  Counter(Domain& domain, const fi_cntr_attr& attr, void* context);
  ~Counter();

  void add(std::uint64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }

  void add_error(std::uint64_t n) { errors_.fetch_add(n, std::memory_order_relaxed); }

  void set(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }

  void set_error(std::uint64_t n) { errors_.store(n, std::memory_order_relaxed); }

  // After some progress.
  std::uint64_t read();
  std::uint64_t read_error();
  int wait(std::uint64_t threshold, int timeout_ms);
  int try_wait();
  // Whether it has changed since the last call. After some progress.
  bool poll_once();

  Domain& domain() { return domain_; }

 private:
  std::uint64_t read(const std::atomic<std::uint64_t>& number);

  Domain& domain_;
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> errors_{0};
  std::uint64_t polled_ = 0;  // value and errors at the last poll_once()
};

// Completion queues and counters that are looked at together.
class PollSet : public fid_poll {
 public:
  using Base = fid_poll;

  explicit PollSet(Domain& domain);
  ~PollSet();

  int add(fid_t member);
  int remove(fid_t member);
  // Stores the contexts of at most `count` members that have something to read; returns how many.
  int poll(void** contexts, int count);

 private:
  Domain& domain_;
  std::vector<fid_t> members_;
};

// Waits until something arrives, without the lock; not at all if `has_news` says so with the lock.
// False: the time is over.
bool wait_for_news(Link& link, std::uint64_t deadline_us, const std::function<bool()>& has_news);
// The end of a wait that begins now; UINT64_MAX for ever.
std::uint64_t deadline_of(int timeout_ms);

}  // namespace score::pm::fi

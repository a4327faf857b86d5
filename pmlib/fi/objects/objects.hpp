// The provider's objects as libfabric uses them. Each begins with the C struct that applications
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

// The modes of memory registration that old applications ask for. libfabric 2 deprecates its names
// for them.
constexpr int kMrUnspec = 0;
constexpr int kMrBasic = 1 << 0;
constexpr int kMrScalable = 1 << 1;

constexpr std::size_t kMaxIov = 4;
constexpr std::size_t kMaxRemoteIov = 4;  // of a read or write; 1 of an atomic
constexpr std::size_t kMaxMrIov = 1;
constexpr std::size_t kInjectBytes = 32 << 10;
// Maximum in flight per endpoint; beyond it calls return FI_EAGAIN.
constexpr std::size_t kMostRequests = 4096;
constexpr std::size_t kMostCopied = 8 << 20;  // bytes that requests keep

// Returns the object that begins with `fid`.
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

  // `ops` opens the objects of a domain and must outlive it; null if nothing is opened through it.
  Domain(std::shared_ptr<Link> link, const fi_info& info, void* context,
         fi_ops_domain* ops = nullptr);
  ~Domain();

  Link& link() { return *link_; }

  // Finds the memory that [address, address + length) of `key` names. Returns an errno and leaves
  // `memory` empty if it may not be used for `access`. A length of 0 is valid at any address.
  int locate(std::uint64_t key, std::uint64_t address, std::uint64_t length, std::uint64_t access,
             std::span<std::byte>& memory) const;
  int register_memory(const fi_mr_attr& attr, std::uint64_t flags, fid_mr** region);

  // Returns the counter of remote writes to the memory of `key`; null if there is no counter or no
  // such memory.
  Counter* counter_of(std::uint64_t key) const;

  void forget(std::uint64_t key) { memory_.erase(key); }

  // Returns a name in the format of the domain's fi_info: its bytes, or a string with its
  // terminator.
  std::string address_of(const Name& name) const;
  // Returns false if `address` is not valid in that format.
  bool read(const void* address, Name& name) const;

  // Returns true if addresses are strings.
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

  // Returns false if there is no such peer.
  bool find(fi_addr_t address, PortName& port) const {
    if (address >= entries_.size()) return false;
    port = entries_[address];
    return port.peer != kRemoved;
  }

  // Returns FI_ADDR_NOTAVAIL if the name was never inserted.
  fi_addr_t address_of(PortName port) const;
  // Returns how many names were inserted; if none, the error of the first one. `errors` receives
  // one error per name and may be null.
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
  const Av* av = nullptr;  // knows `from`; null: no source
};

struct CompletionError {
  Completion completion;
  int error = 0;
  std::size_t missing = 0;  // bytes that did not fit
  std::string source{};     // address of the sender, if that is reported
};

class Cq : public fid_cq {
 public:
  using Base = fid_cq;

  Cq(Domain& domain, const fi_cq_attr& attr, void* context);
  ~Cq();

  void push(const Completion& completion);
  void push(const CompletionError& failure);
  // Takes at most `count` completions; makes some progress first if there are none.
  ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources);
  ssize_t read_error(fi_cq_err_entry& entry);
  ssize_t wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources, int timeout_ms);
  // Returns 0 if the caller may sleep on the descriptor, -FI_EAGAIN if there is something to read.
  int try_wait();
  void signal();

  Domain& domain() { return domain_; }

  // Makes some progress, then returns true if there is something to read.
  bool poll_once();

 private:
  bool has_news() const { return head_ != tail_ || !failures_.empty(); }

  // Reads as read() does, but never rests.
  ssize_t read_once(void* buffer, std::size_t count, fi_addr_t* sources);

  [[gnu::noinline]] void grow();
  void poll_link();
  void give_source(fi_cq_err_entry& entry, const std::string& source);
  void write_out(std::byte*& to, const Completion& completion) const;

  Domain& domain_;
  fi_cq_format format_;
  std::vector<Completion> ring_;  // size is a power of two
  std::size_t head_ = 0, tail_ = 0;
  std::deque<CompletionError> failures_;
  std::string last_source_;  // of the last failure that was read
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

  // Both return the number after some progress.
  std::uint64_t read();
  std::uint64_t read_error();
  int wait(std::uint64_t threshold, int timeout_ms);
  int try_wait();
  // Makes some progress, then returns true if the counter has changed since the last call.
  bool poll_once();

  Domain& domain() { return domain_; }

 private:
  std::uint64_t read(const std::atomic<std::uint64_t>& number);

  Domain& domain_;
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> errors_{0};
  std::uint64_t polled_ = 0;  // value and errors at the last poll_once()
};

// Polls several completion queues and counters together.
class PollSet : public fid_poll {
 public:
  using Base = fid_poll;

  explicit PollSet(Domain& domain);
  ~PollSet();

  int add(fid_t member);
  int remove(fid_t member);
  // Stores the contexts of at most `count` members that have something to read, and returns their
  // number.
  int poll(void** contexts, int count);

 private:
  Domain& domain_;
  std::vector<fid_t> members_;
};

// Waits without the lock until something arrives. Does not wait if `has_news`, which is called with
// the lock, returns true. Returns false if the time is over.
bool wait_for_news(Link& link, std::uint64_t deadline_us, const std::function<bool()>& has_news);
// Returns the end of a wait that begins now; UINT64_MAX if it has no end.
std::uint64_t deadline_of(int timeout_ms);

}  // namespace score::pm::fi

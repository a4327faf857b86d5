// Implements remote memory between processes of a node.
//
// The kernel's copy from process to process (cross-memory attach) costs a microsecond before the
// first byte moves: as long as copying 16 KB. So short writes go like messages through the sender's
// pool, and longer ones do so where that is quicker (see copy_choice.hpp). The sender copies a
// piece into a buffer and offers it through the receiver's inbox. The receiver copies it to its
// place when it makes progress, and marks the buffer. No answer has to be sent, and the two copies
// of consecutive pieces run side by side.
//
// A receiver that computes does not look at its inbox. So either side may take an offer: after some
// turns without news, and before it sleeps, the sender takes it back and lets the kernel copy. The
// side that changes the buffer from Offered to Taken stores the piece.
//
// Where cross-memory attach is forbidden (a different user namespace, seccomp, ptrace_scope),
// writes of any length go in pieces, and a read asks the peer to write.
#include "pmlib/shmem/shmem.hpp"
#include "pmlib/shmem/shmem_entries.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <sys/uio.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace score::pm {

namespace {

constexpr std::uint32_t kStateMask = 7;
constexpr std::uint32_t kIndexShift = 3;  // of the transfer, 8 bits
constexpr std::uint32_t kSerialShift = 11;
constexpr std::uint32_t kLookEverywhere = 16;
constexpr std::uint32_t kMaxPatientTurns = 200;  // progress() calls without news: some us
constexpr std::uint32_t kKeptForMessages = 4;    // pool buffers that writes leave free
constexpr std::uint32_t kShortWrite = 8192;      // bytes, see copy_out()

static_assert(kNearTransfers <= 1u << (kSerialShift - kIndexShift));
static_assert(kNearTransfers == 64, "a bit each in running_");

BufferState state_of(std::uint32_t used) {
  return static_cast<BufferState>(used & kStateMask);
}

std::uint32_t with_state(std::uint32_t used, BufferState state) {
  return (used & ~kStateMask) | static_cast<std::uint32_t>(state);
}

std::uint32_t transfer_of(std::uint32_t used) {
  return (used >> kIndexShift) & ((1u << (kSerialShift - kIndexShift)) - 1);
}

template <class T>
T contents(const InboxEntry& entry) {
  T value;
  std::memcpy(&value, entry.bytes.data(), sizeof value);
  return value;
}

#if defined(__x86_64__)

constexpr std::size_t kWideBytes = 256;

// Copies whole pieces of kWideBytes; returns the number of bytes.
[[gnu::target("avx512f")]] std::size_t copy_wide(std::byte* to, const std::byte* from,
                                                 std::size_t length) {
  std::size_t at = 0;
  for (; at + kWideBytes <= length; at += kWideBytes) {
    for (std::size_t i = at; i < at + kWideBytes; i += 64) {
      _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
    }
  }
  _mm256_zeroupper();  // as in crc32c.cpp: the compiler does not always do it
  return at;
}

// Copies out of a buffer. The C library copies a few kilobytes by one instruction (rep movsb),
// which is the quickest way into a buffer. But it reads data that the other processor has just
// written more slowly than vectors do. With more bytes in flight the opposite holds. See
// docs/adr/0052.
void copy_out(std::byte* to, const std::byte* from, std::size_t length, bool is_short) {
  static const bool is_wide = __builtin_cpu_supports("avx512f") != 0;
  const std::size_t done = is_short && is_wide ? copy_wide(to, from, length) : 0;
  if (done < length) std::memcpy(to + done, from + done, length - done);
}

#else

void copy_out(std::byte* to, const std::byte* from, std::size_t length, bool) {
  if (length > 0) std::memcpy(to, from, length);
}

#endif

bool is_forbidden(int error) {
  return error == EPERM || error == EACCES || error == ENOSYS;
}

}  // namespace

bool is_crossing_allowed(pid_t pid) {
  char byte = 0;
  const iovec local{&byte, 1};
  const iovec remote{nullptr, 1};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 && errno == EFAULT;
}

// Calls `f` with the index of each of `transfers`, which may lose members in the meantime.
template <class F>
void Shmem::for_each(const std::uint64_t& transfers, F f) {
  for (std::uint64_t rest = transfers; rest != 0; rest &= (rest - 1) & transfers) {
    f(static_cast<std::uint32_t>(std::countr_zero(rest)));
  }
}

bool Shmem::can_cross(std::uint32_t rank) const {
  return rank == segment_.header().rank || peers_[rank].can_cross;
}

// --- by the kernel -----------------------------------------------------------------------------

int Shmem::copy(std::uint32_t rank, std::byte* own, std::uint64_t theirs, std::uint64_t length,
                bool is_write) const {
  if (rank == segment_.header().rank) {
    auto* other = reinterpret_cast<std::byte*>(theirs);
    std::memmove(is_write ? other : own, is_write ? own : other, length);
    return 0;
  }
  const auto pid =
      static_cast<pid_t>(peer_segment(rank)->header().owner_pid.load(std::memory_order_relaxed));
  std::uint64_t done = 0;
  while (done < length) {
    const iovec local{own + done, length - done};
    const iovec remote{reinterpret_cast<void*>(theirs + done), length - done};
    const ssize_t n = is_write ? process_vm_writev(pid, &local, 1, &remote, 1, 0)
                               : process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (n <= 0) return errno == ESRCH ? EHOSTDOWN : errno;
    done += static_cast<std::uint64_t>(n);
  }
  return 0;
}

// Copies the whole transfer at once. Returns EPERM if cross-memory attach is not allowed.
int Shmem::cross(const Transfer& t) {
  const Segment& to = *peer_segment(t.peer);
  if (!region_covers(to, t.remote.region, t.remote.nonce, t.remote.offset, t.length)) {
    return EACCES;
  }
  auto* own = reinterpret_cast<std::byte*>(segment_.region(t.local).address + t.offset);
  const int error =
      copy(t.peer, own, to.region(t.remote.region).address + t.remote.offset, t.length, t.is_write);
  if (is_forbidden(error)) {
    peers_[t.peer].can_cross = false;
    return EPERM;
  }
  if (error == 0 && t.is_write) segment_.header().counters.rma_bytes_written += t.length;
  return error;
}

// --- starting ----------------------------------------------------------------------------------

int Shmem::write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
                 std::uint32_t length, OperationId& op) {
  return transfer({peer, local, offset, remote, length, true}, op);
}

int Shmem::read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
                std::uint32_t length, OperationId& op) {
  return transfer({peer, local, offset, remote, length, false}, op);
}

int Shmem::transfer(const Transfer& t, OperationId& op) {
  if (const int error = attach(t.peer); error != 0) return error;
  // A peer that has left has no memory here any more, and its process id may have been reused.
  if (peer_segment(t.peer)->header().closed.load(std::memory_order_relaxed) != 0) return EHOSTDOWN;
  if (t.local >= segment_.geometry().regions ||
      !region_covers(segment_, t.local, segment_.region(t.local).nonce, t.offset, t.length)) {
    return EINVAL;
  }
  op = operations_.start(t.peer);
  if (op == 0) return ENOBUFS;
  const int error = start_transfer(t, op);
  if (error != 0) {
    operations_.finish(static_cast<std::uint16_t>(op & 0xffff), error);
    operations_.test(op);
    op = 0;
  }
  return error;
}

CopyWay Shmem::choose_way(std::uint32_t length) {
  return choice_.choose(length, running_bytes_, [] {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  });
}

// Returns 0 if the transfer has ended or continues by itself.
int Shmem::start_transfer(const Transfer& t, OperationId op) {
  const Segment& to = *peer_segment(t.peer);
  const bool is_covered =
      region_covers(to, t.remote.region, t.remote.nonce, t.remote.offset, t.length);
  const bool is_own = t.peer == segment_.header().rank;
  const bool is_awake = to.header().sleeping.load(std::memory_order_relaxed) == 0;
  const bool by_pool =
      !is_own && t.length > 0 && is_covered &&
      (!can_cross(t.peer) || (t.is_write && is_awake && choose_way(t.length) == CopyWay::Pool));
  if (by_pool && !t.is_write) return request_read(t, op);
  if (by_pool && start_pieces({.running = 1,
                               .peer = t.peer,
                               .op = op,
                               .length = t.length,
                               .local_region = t.local,
                               .remote_region = t.remote.region,
                               .remote_nonce = t.remote.nonce,
                               .local_offset = t.offset,
                               .remote_offset = t.remote.offset})) {
    return 0;
  }
  if (by_pool && !can_cross(t.peer)) return ENOBUFS;
  const int error = is_covered ? cross(t) : EACCES;
  if (error == EPERM) return start_transfer(t, op);  // just noticed, so use the pool
  operations_.finish(static_cast<std::uint16_t>(op & 0xffff), error);
  return 0;
}

int Shmem::request_read(const Transfer& t, OperationId op) {
  const ReadOffer request{t.remote.region,
                          t.remote.nonce,
                          t.remote.offset,
                          t.local,
                          segment_.region(t.local).nonce,
                          t.offset,
                          op,
                          0};
  return push(t.peer, kRead, t.length, kNoIndex, std::as_bytes(std::span(&request, 1)));
}

// Returns false if every entry is in use.
bool Shmem::start_pieces(const LocalTransfer& transfer) {
  const auto index = static_cast<std::uint32_t>(std::countr_one(running_));
  if (index == kNearTransfers) return false;
  running_ |= std::uint64_t{1} << index;
  segment_.transfer(index) = transfer;
  running_bytes_ += transfer.length;
  pump(index);
  return true;
}

void Shmem::end_transfer(std::uint32_t index) {
  running_bytes_ -= segment_.transfer(index).length;
  segment_.transfer(index) = LocalTransfer();
  running_ &= ~(std::uint64_t{1} << index);
}

// --- the sending side --------------------------------------------------------------------------

// Puts as much of the transfer into buffers as there is room for.
void Shmem::pump(std::uint32_t index) {
  LocalTransfer& t = segment_.transfer(index);
  const std::uint32_t buffers = segment_.geometry().pool_buffers;
  const std::uint32_t limit = buffers > 2 * kKeptForMessages ? buffers - kKeptForMessages : 1;
  while (t.error == 0 && t.given < t.length && pieces_ < limit) {
    if (!offer(index, std::min(message_bytes(), t.length - t.given))) return;
  }
}

bool Shmem::offer(std::uint32_t index, std::uint32_t piece) {
  LocalTransfer& t = segment_.transfer(index);
  const std::uint32_t token = static_cast<std::uint32_t>(BufferState::Offered) |
                              index << kIndexShift | ++serial_ << kSerialShift;
  const std::uint16_t buffer = take_pool_buffer(token);
  if (buffer == kNoIndex) return false;
  const auto* own = reinterpret_cast<const std::byte*>(segment_.region(t.local_region).address +
                                                       t.local_offset + t.given);
  const bool is_short = t.length <= kShortWrite;
  std::memcpy(segment_.pool_buffer(buffer), own, piece);
  // The entry must wait until the copied bytes have left the processor. Work done meanwhile costs
  // nothing.
  collect_oldest(true);
  const WriteOffer told{t.remote_region, t.remote_nonce, t.remote_offset + t.given, token,
                        is_short};
  offers_[buffer] = {t.peer, piece, {told.region, told.nonce, told.offset}};
  const int error = push(t.peer, kWrite, piece, buffer, std::as_bytes(std::span(&told, 1)));
  if (error != 0) {
    segment_.pool_used(buffer).store(0, std::memory_order_relaxed);
    if (error != ENOBUFS) t.error = static_cast<std::uint16_t>(error);
    return false;
  }
  ++t.pieces;
  ++pieces_;
  t.given += piece;
  // If all places are in use, the oldest one belongs to a buffer that is void by now.
  offered_[offered_tail_++ & (offered_.size() - 1)] = buffer;
  if (offered_tail_ - offered_head_ > offered_.size()) ++offered_head_;
  return true;
}

// Frees the buffer if its piece is stored, and continues the transfer.
bool Shmem::collect(std::uint32_t buffer) {
  std::atomic<std::uint32_t>& used = segment_.pool_used(buffer);
  const std::uint32_t value = used.load(std::memory_order_acquire);
  if (state_of(value) < BufferState::Stored) return false;
  used.store(0, std::memory_order_relaxed);
  if (transfer_of(value) >= kNearTransfers) return true;  // only in a corrupt segment
  LocalTransfer& t = segment_.transfer(transfer_of(value));
  if (t.running == 0 || t.pieces == 0) return true;
  --t.pieces;
  --pieces_;
  if (state_of(value) == BufferState::Denied) t.error = EACCES;
  pump(transfer_of(value));
  settle(transfer_of(value));
  return true;
}

// Frees one buffer per call. Receivers store buffers roughly in the order of offers, so only the
// oldest one is read: a read of a buffer that is being stored would take its line from the storing
// processor. The line of the next buffer is prefetched while other work is done. With
// `is_offering`, a buffer stays if its transfer would make further offers.
bool Shmem::collect_oldest(bool is_offering) {
  const auto mask = static_cast<std::uint32_t>(offered_.size() - 1);
  while (offered_head_ != offered_tail_) {
    const std::uint16_t buffer = offered_[offered_head_ & mask];
    const std::uint32_t value = segment_.pool_used(buffer).load(std::memory_order_acquire);
    const auto state = state_of(value);
    if (state == BufferState::Offered || state == BufferState::Taken) return false;
    if (is_offering && state >= BufferState::Stored && has_more(transfer_of(value))) return false;
    if (++offered_head_ != offered_tail_) {
      __builtin_prefetch(&segment_.pool_used(offered_[offered_head_ & mask]));
    }
    if (collect(buffer)) return true;
  }
  return false;
}

bool Shmem::has_more(std::uint32_t index) const {
  return index < kNearTransfers && segment_.transfer(index).given < segment_.transfer(index).length;
}

bool Shmem::collect_all() {
  bool something = false;
  for (std::uint32_t buffer = 0; buffer < segment_.geometry().pool_buffers; ++buffer) {
    something |= collect(buffer);
  }
  return something;
}

// Ends the transfer if all of it is done.
bool Shmem::settle(std::uint32_t index) {
  LocalTransfer& t = segment_.transfer(index);
  if (t.pieces != 0 || (t.error == 0 && t.given < t.length)) return false;
  if (t.remote_op != 0 && t.error != EHOSTDOWN &&
      end_remote(t.peer, t.remote_op, t.error) == ENOBUFS) {
    return false;  // its inbox is full: retried later
  }
  if (t.error == 0) segment_.header().counters.rma_bytes_written += t.length;
  if (t.op != 0) operations_.finish_for(t.peer, t.op, t.error);
  end_transfer(index);
  return true;
}

// Takes an offer back and stores the piece from here. Returns false if that is not possible.
bool Shmem::steal(std::uint16_t buffer) {
  const Offered& to = offers_[buffer];
  std::atomic<std::uint32_t>& used = segment_.pool_used(buffer);
  std::uint32_t value = used.load(std::memory_order_relaxed);
  if (state_of(value) != BufferState::Offered || to.length == 0 || !can_cross(to.peer))
    return false;
  if (!used.compare_exchange_strong(value, with_state(value, BufferState::Taken))) return false;
  const Segment& theirs = *peer_segment(to.peer);
  int error = EACCES;
  if (region_covers(theirs, to.to.region, to.to.nonce, to.to.offset, to.length)) {
    error = copy(to.peer, segment_.pool_buffer(buffer),
                 theirs.region(to.to.region).address + to.to.offset, to.length, true);
  }
  used.store(with_state(value, error == 0 ? BufferState::Stored : BufferState::Denied));
  return true;
}

void Shmem::push_through() {
  if (running_ == 0) return;
  // The next progress() must look everywhere, also for transfers without a piece: the rank may
  // sleep after it, and nothing would wake it.
  patient_turns_ = kLookEverywhere - 1;
  for (std::uint32_t buffer = 0; buffer < segment_.geometry().pool_buffers; ++buffer) {
    steal(static_cast<std::uint16_t>(buffer));
  }
  for_each(running_, [this](std::uint32_t i) { cross_rest(segment_.transfer(i)); });
}

// Copies the part that no buffer holds yet in one piece.
void Shmem::cross_rest(LocalTransfer& t) {
  if (t.error != 0 || t.given == t.length || !can_cross(t.peer)) return;
  const RegionName to{t.remote_region, t.remote_nonce, t.remote_offset + t.given};
  const int error =
      cross({t.peer, t.local_region, t.local_offset + t.given, to, t.length - t.given, true});
  if (error == EPERM) return;
  if (error == 0) segment_.header().counters.rma_bytes_written -= t.length - t.given;  // settle()
  t.error = static_cast<std::uint16_t>(error);
  t.given = t.length;
}

bool Shmem::is_region_in_use(std::uint32_t region) const {
  bool is_used = false;
  for_each(running_, [&](std::uint32_t i) {
    is_used |= segment_.transfer(i).local_region == region && has_more(i);
  });
  return is_used;
}

void Shmem::forget_transfers(std::uint32_t rank) {
  for (std::uint32_t buffer = 0; buffer < segment_.geometry().pool_buffers; ++buffer) {
    std::atomic<std::uint32_t>& used = segment_.pool_used(buffer);
    const std::uint32_t value = used.load(std::memory_order_relaxed);
    const bool is_write = state_of(value) >= BufferState::Offered;
    if (is_write && transfer_of(value) < kNearTransfers &&
        segment_.transfer(transfer_of(value)).peer == rank) {
      used.store(0, std::memory_order_relaxed);
    }
  }
  for_each(running_, [this, rank](std::uint32_t i) {
    const LocalTransfer& t = segment_.transfer(i);
    if (t.peer != rank) return;
    pieces_ -= std::min<std::uint32_t>(pieces_, t.pieces);
    end_transfer(i);
  });
}

// Continues the transfers that wait for a buffer or for room in an inbox.
bool Shmem::go_on() {
  bool something = false;
  for_each(running_, [this, &something](std::uint32_t i) {
    pump(i);
    something |= settle(i);
  });
  return something;
}

bool Shmem::progress() {
  bool something = take_entries();
  if (running_ == 0) return something;
  if (collect_oldest(false)) {
    patient_turns_ = 0;
    return true;
  }
  if (++patient_turns_ % kLookEverywhere != 0) return something;
  if (patient_turns_ > kMaxPatientTurns) push_through();
  something |= collect_all();
  return go_on() || something;
}

// --- the receiving side ------------------------------------------------------------------------

// Handles entries of the library before messages that the application has not received.
//
// A read that cannot be served yet must not delay the entries behind it, or two ranks that read
// from each other would wait for each other. So it changes places with an entry behind it that was
// handled.
bool Shmem::take_entries() {
  const std::uint32_t mask = segment_.geometry().inbox_entries - 1;
  bool something = false;
  std::vector<InboxEntry*> waiting;
  if (static_cast<std::int32_t>(seen_ - head_) < 0) seen_ = head_;
  for (std::uint32_t at = seen_; at - head_ <= mask; ++at) {
    InboxEntry& entry = segment_.inbox(at & mask);
    if (entry.turn.load(std::memory_order_acquire) != at + 1) break;
    const std::uint16_t kind = entry.kind;
    if (is_internal(kind) && kind != kTaken && !take_entry(entry, kind)) {
      waiting.push_back(&entry);
    } else if (is_internal(kind)) {
      something |= kind != kTaken;
      entry.kind = kTaken;
      if (!waiting.empty()) postpone(waiting, entry);
    }
    if (waiting.empty()) seen_ = at + 1;
  }
  while (has_input() && segment_.inbox(head_ & mask).kind == kTaken) release(head_++);
  return something;
}

// Moves the first waiting entry to `later`, which was handled.
void Shmem::postpone(std::vector<InboxEntry*>& waiting, InboxEntry& later) {
  InboxEntry& first = *waiting.front();
  waiting.erase(waiting.begin());
  later.source = first.source;
  later.length = first.length;
  later.bytes = first.bytes;
  later.kind = kRead;
  first.kind = kTaken;
  waiting.push_back(&later);
}

// The entry comes from a different process, so each field that matters is read only once.
bool Shmem::take_entry(const InboxEntry& entry, std::uint16_t kind) {
  const std::uint32_t source = entry.source;
  if (source >= peers_.size() || attach(source) != 0) return true;
  if (kind == kOpDone) end_announcement(source, entry);
  if (kind == kWrite) store_offer(source, entry);
  return kind != kRead || serve_read(source, entry);
}

// Ends an announcement that a peer has fetched, or a read that it has served.
void Shmem::end_announcement(std::uint32_t source, const InboxEntry& entry) {
  const auto note = contents<std::array<std::uint32_t, 2>>(entry);
  operations_.finish_for(source, note[0], static_cast<int>(note[1] & 0xff));
}

void Shmem::store_offer(std::uint32_t source, const InboxEntry& entry) {
  const auto offer = contents<WriteOffer>(entry);
  const std::uint32_t length = entry.length;
  const std::uint16_t buffer = entry.buffer;
  const Segment& from = *peer_segment(source);
  if (buffer >= from.geometry().pool_buffers || length > from.geometry().pool_buffer_bytes) return;
  std::atomic<std::uint32_t>& used = from.pool_used(buffer);
  std::uint32_t expected = with_state(offer.token, BufferState::Offered);
  if (!used.compare_exchange_strong(expected, with_state(expected, BufferState::Taken))) return;
  const bool is_allowed = region_covers(segment_, offer.region, offer.nonce, offer.offset, length);
  if (is_allowed) {
    auto* to = reinterpret_cast<std::byte*>(segment_.region(offer.region).address + offer.offset);
    copy_out(to, from.pool_buffer(buffer), length, offer.is_short != 0);
  }
  // A full barrier is needed, as in push().
  used.exchange(with_state(expected, is_allowed ? BufferState::Stored : BufferState::Denied));
  wake(from.header());
}

// Returns false if every transfer is in use: the entry then stays in its place.
bool Shmem::serve_read(std::uint32_t source, const InboxEntry& entry) {
  const auto request = contents<ReadOffer>(entry);
  const std::uint32_t length = entry.length;
  const bool is_allowed =
      region_covers(segment_, request.region, request.nonce, request.offset, length);
  if (!is_allowed) return end_remote(source, request.op, EACCES) != ENOBUFS;
  return start_pieces({.running = 1,
                       .peer = source,
                       .remote_op = request.op,
                       .length = length,
                       .local_region = request.region,
                       .remote_region = request.to_region,
                       .remote_nonce = request.to_nonce,
                       .local_offset = request.offset,
                       .remote_offset = request.to_offset});
}

}  // namespace score::pm

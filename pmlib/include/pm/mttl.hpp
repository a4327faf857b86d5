// MTTL has templates for parallel programs on PM, after MPC++'s Multi-Thread Template Library:
// invocation of function objects on other ranks, global pointers, memory made and freed on other
// ranks, synchronisation variables, barrier, reduction.
//
// MTTL has coroutines instead of MPC++'s threads: a rank runs one thread, and a coroutine that
// waits lets others run. spawn() starts one here, post() one on a different rank; invoke() starts
// one there and returns its result.
//
//   mttl::Task<void> program(mttl::Runtime& rt) {
//     const int other = co_await rt.invoke(1, [](mttl::Runtime& there) { return 42; });
//     co_await rt.barrier();
//   }
//   int main() { pm::Context context; mttl::Runtime rt(context); rt.run(program(rt)); }
//
// Function objects, their results and all remote objects are copied as bytes. So they must be
// trivially copyable and mean the same on every rank: GlobalPtr is the only pointer allowed. All
// ranks run the same program. All call run(), which returns when the program has ended on all
// ranks.
#pragma once

#include "mttl_parts.hpp"

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mttl {

// --- runtime -----------------------------------------------------------------------------------

class Runtime {
 public:
  // `context` must outlive the runtime, which is its only user.
  explicit Runtime(pm::Context& context) : context_(context), scratch_(kScratchCells) {
    check(pm_register(raw(), scratch_.data(), scratch_.size() * sizeof(Cell), &scratch_handle_));
    for (std::size_t i = 0; i < kScratchCells; ++i) free_cells_.push_back(i);
  }

  ~Runtime() {
    while (pm_deregister(raw(), &scratch_handle_) == PM_EBUSY) pm_progress(raw());
  }

  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  std::uint32_t self() const { return context_.self(); }

  std::uint32_t size() const { return context_.size(); }

  // Runs `program` and serves the other ranks until it has ended on all ranks.
  void run(Task<void> program) {
    Task<void> whole = run_all(std::move(program));
    whole.start();
    while (!whole.is_done() || !outbox_.empty()) turn();
    whole.take();
    // The last messages must arrive before this rank leaves.
    for (int i = 0; i < 100'000 && pm_quiet(raw()) == 0; ++i) pm_progress(raw());
  }

  // Starts a coroutine that is not awaited. The runtime keeps it until it ends; its exception ends
  // run().
  void spawn(Task<void> task) {
    spawned_.push_back(std::move(task));
    spawned_.back().start();
  }

  // Invokes `f(Runtime&)` on `rank` and returns its result. `f` may be a coroutine that returns
  // Task<R>.
  template <Portable F>
  auto invoke(std::uint32_t rank, const F& f) {
    using R = typename detail::ResultOf<std::invoke_result_t<F, Runtime&>>::type;
    static_assert(std::is_void_v<R> || std::is_trivially_copyable_v<R>);
    auto state = std::make_shared<typename Future<R>::State>();
    const std::uint64_t id = next_future_++;
    futures_[id] = [state](std::span<const std::byte> bytes) {
      state->reply.emplace(bytes.begin(), bytes.end());
      if (state->waiting) state->waiting.resume();
    };
    call(rank, f, id);
    return Future<R>(std::move(state));
  }

  // Invokes `f` without an answer.
  template <Portable F>
  void post(std::uint32_t rank, const F& f) {
    call(rank, f, 0);
  }

  // Invokes `f` and waits, serving other ranks in the meantime. It is for code that is not a
  // coroutine.
  template <Portable F>
  auto invoke_sync(std::uint32_t rank, const F& f) {
    auto future = invoke(rank, f);
    while (!future.is_ready()) turn();
    return future.await_resume();
  }

  // Makes a name of own memory for other ranks. The memory lives as long as `region` does.
  template <Portable T>
  GlobalPtr<T> global(const pm::Region& region) const {
    return {self(), region.handle(), 0};
  }

  pm::Region share(std::span<std::byte> memory) { return context_.register_memory(memory); }

  // These functions read and write one remote object.
  template <Portable T>
  Task<T> read(GlobalPtr<T> from) {
    static_assert(sizeof(T) <= sizeof(Cell));
    const std::size_t cell = take_cell();
    const int error = co_await transfer(from.rank, from.memory, from.offset(), scratch_handle_,
                                        cell * sizeof(Cell), sizeof(T), false);
    T value;
    std::memcpy(&value, scratch_[cell].bytes, sizeof value);
    free_cells_.push_back(cell);
    check(error);
    co_return value;
  }

  template <Portable T>
  Task<void> write(GlobalPtr<T> to, T value) {
    static_assert(sizeof(T) <= sizeof(Cell));
    const std::size_t cell = take_cell();
    std::memcpy(scratch_[cell].bytes, &value, sizeof value);
    const int error = co_await transfer(to.rank, to.memory, to.offset(), scratch_handle_,
                                        cell * sizeof(Cell), sizeof(T), true);
    free_cells_.push_back(cell);
    check(error);
  }

  // These functions move many objects at once, without a copy. `local` must not change until the
  // task has ended.
  template <Portable T>
  Task<void> read_array(GlobalPtr<T> from, std::span<T> local) {
    co_await move_array(from, std::as_writable_bytes(local), false);
  }

  template <Portable T>
  Task<void> write_array(GlobalPtr<T> to, std::span<T> local) {
    co_await move_array(to, std::as_writable_bytes(local), true);
  }

  // Makes `count` objects, all bytes zero, in the memory of `rank` (MPC++'s remote new). They live
  // until remote_delete(), but not longer than that rank's runtime. Throws pm::Error: PM_EINVAL if
  // there is no such rank, or no or too many objects; PM_ENOBUFS if there is no memory; PM_ENOSPC
  // if there are too many registrations on that rank.
  template <Portable T>
  Task<GlobalPtr<T>> remote_new(std::uint32_t rank, std::uint64_t count = 1) {
    if (rank >= size() || count == 0 || count > kMostAllocated / sizeof(T)) check(PM_EINVAL);
    const std::uint64_t bytes = count * sizeof(T);
    auto make_there = [bytes](Runtime& there) { return there.make(bytes); };
    const Made made = co_await invoke(rank, make_there);
    check(made.error);
    co_return GlobalPtr<T>{rank, made.memory, 0};
  }

  // Frees the memory of remote_new(), from any rank; `first` points at the first object. No access
  // to it may be in flight. Throws pm::Error with PM_EINVAL if it is not, or no longer, such
  // memory.
  template <Portable T>
  Task<void> remote_delete(GlobalPtr<T> first) {
    if (first.rank >= size() || first.index != 0) check(PM_EINVAL);
    const pm_handle memory = first.memory;
    auto free = [memory](Runtime& there) { return there.unmake(memory); };
    check(co_await invoke(first.rank, free));
  }

  // Ends when all ranks have called it. Each rank must call collective operations in the same
  // order.
  Task<void> barrier() {
    co_await all_reduce(0, [](int a, int) { return a; });
  }

  // Applies `op` to the values of all ranks and returns the result on all. The values go up and
  // down a binary tree, so `op` must be associative and commutative.
  template <Portable T, class Op>
  Task<T> all_reduce(T value, Op op) {
    static_assert(sizeof(T) <= sizeof(Packed));
    const std::uint64_t number = next_collective_++;
    for (std::uint32_t child = 2 * self() + 1; child <= 2 * self() + 2; ++child) {
      if (child >= size()) break;
      value = op(value, unpack<T>(co_await collectives_[number].up.get()));
    }
    if (self() != 0) {
      const Packed sum = pack(value);
      post((self() - 1) / 2, [number, sum](Runtime& rt) { rt.collectives_[number].up.put(sum); });
      value = unpack<T>(co_await collectives_[number].down.get());
    }
    const Packed result = pack(value);
    for (std::uint32_t child = 2 * self() + 1; child <= 2 * self() + 2; ++child) {
      if (child >= size()) break;
      post(child, [number, result](Runtime& rt) { rt.collectives_[number].down.put(result); });
    }
    collectives_.erase(number);
    co_return value;
  }

  // Gives other coroutines and ranks a turn. A coroutine that computes for long should call it.
  auto yield() {
    struct Yield {
      Runtime& rt;

      bool await_ready() const { return false; }

      void await_suspend(std::coroutine_handle<> h) const { rt.yielded_.push_back(h); }

      void await_resume() const {}
    };

    return Yield{*this};
  }

 private:
  template <class F>
  friend struct detail::Entry;

  static constexpr std::size_t kScratchCells = 256;
  static constexpr std::uint64_t kMostAllocated = std::uint64_t{1}
                                                  << 40;  // bytes; an arbitrary limit
  static constexpr std::int64_t kPollUs = 100;

  struct alignas(64) Cell {
    std::byte bytes[64];
  };

  struct Packed {
    std::byte bytes[64];
  };

  struct Collective {
    Sync<Packed> up, down;
  };

  struct Transfer;

  struct Parcel {
    std::uint32_t rank;
    std::vector<std::byte> bytes;
  };

  // An Allocation is memory that a rank has requested by remote_new().
  struct Allocation {
    Allocation(pm_context* context, std::uint64_t bytes) : memory(bytes), region(context, memory) {}

    std::vector<std::byte> memory;
    pm::Region region;
  };

  struct Made {
    int error;
    pm_handle memory;
  };

  pm_context* raw() const { return context_.raw(); }

  static void check(int error) {
    if (error != PM_SUCCESS) throw pm::Error(error);
  }

  template <class T>
  static Packed pack(const T& value) {
    Packed packed{};
    std::memcpy(packed.bytes, &value, sizeof value);
    return packed;
  }

  template <class T>
  static T unpack(const Packed& packed) {
    T value;
    std::memcpy(&value, packed.bytes, sizeof value);
    return value;
  }

  Task<void> run_all(Task<void> program) {
    co_await program;
    co_await barrier();
  }

  // --- memory for other ranks

  Made make(std::uint64_t bytes) {
    try {
      auto made = std::make_unique<Allocation>(raw(), bytes);
      const pm_handle handle = made->region.handle();
      allocations_[{handle.region, handle.nonce}] = std::move(made);
      return {PM_SUCCESS, handle};
    } catch (const pm::Error& error) {
      return {error.code(), {}};
    } catch (const std::exception&) {  // bad_alloc, length_error
      return {PM_ENOBUFS, {}};
    }
  }

  int unmake(const pm_handle& memory) {
    return allocations_.erase({memory.region, memory.nonce}) == 1 ? PM_SUCCESS : PM_EINVAL;
  }

  // --- messages

  template <class F>
  void call(std::uint32_t rank, const F& f, std::uint64_t reply_to) {
    send(rank, {detail::Entry<F>::kId, reply_to}, std::as_bytes(std::span(&f, 1)));
  }

  void reply(std::uint32_t rank, std::uint64_t to, std::span<const std::byte> bytes) {
    if (to != 0) send(rank, {detail::kReply, to}, bytes);
  }

  void send(std::uint32_t rank, detail::CallHeader header, std::span<const std::byte> body) {
    Parcel parcel{rank, std::vector<std::byte>(sizeof header + body.size())};
    std::memcpy(parcel.bytes.data(), &header, sizeof header);
    if (!body.empty()) std::memcpy(&parcel.bytes[sizeof header], body.data(), body.size());
    if (!outbox_.empty() || !try_send(parcel)) outbox_.push_back(std::move(parcel));
  }

  // This function must never wait: a rank that waited here could not free buffers for others.
  bool try_send(const Parcel& parcel) {
    void* buffer = nullptr;
    if (!is_buffer_lent_) {
      const int error = pm_get_send_buffer(raw(), parcel.rank, &buffer, parcel.bytes.size());
      if (error == PM_ENOBUFS) return false;
      check(error);
      std::memcpy(buffer, parcel.bytes.data(), parcel.bytes.size());
    }
    const int error = pm_send(raw());
    is_buffer_lent_ = error == PM_ENOBUFS;
    if (is_buffer_lent_) return false;
    check(error);
    return true;
  }

  void dispatch(const pm::Message& message) {
    const auto bytes = message.bytes();
    detail::CallHeader header;
    if (bytes.size() < sizeof header) throw std::runtime_error("not a message of this library");
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto body = bytes.subspan(sizeof header);
    if (header.handler != detail::kReply) {
      const auto found = detail::handlers().find(header.handler);
      if (found == detail::handlers().end()) throw std::runtime_error("unknown function invoked");
      return found->second(*this, message.source(), header.reply_to, body);
    }
    const auto future = futures_.find(header.reply_to);
    if (future == futures_.end()) throw std::runtime_error("answer without an invocation");
    const auto deliver = std::move(future->second);
    futures_.erase(future);
    deliver(body);
  }

  // --- the loop

  void turn() {
    bool did = false;
    while (!outbox_.empty() && try_send(outbox_.front())) outbox_.pop_front();
    if (auto message = context_.receive()) {
      if (!message->is_datagram()) dispatch(*message);
      did = true;
    }
    did |= finish_transfers();
    for (std::size_t n = yielded_.size(); n > 0; --n, did = true) {
      const std::coroutine_handle<> h = yielded_.front();
      yielded_.pop_front();
      h.resume();
    }
    std::erase_if(spawned_, [](const Task<void>& task) {
      if (task.is_done()) task.take();
      return task.is_done();
    });
    if (did) return;
    pm_wait(raw(), outbox_.empty() && transfers_.empty() ? -1 : kPollUs);
  }

  bool finish_transfers() {
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      Transfer& t = *transfers_[i];
      if (t.result == PM_ENOBUFS) t.begin();
      if (t.result == PM_ENOBUFS) continue;
      if (t.result == PM_SUCCESS) t.result = pm_test(raw(), t.op);
      if (t.result == PM_EINPROGRESS) {
        t.result = PM_SUCCESS;
        continue;
      }
      transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(i));
      t.handle.resume();
      return true;
    }
    return false;
  }

  // --- remote memory

  std::size_t take_cell() {
    if (free_cells_.empty()) throw std::runtime_error("too many remote accesses at once");
    const std::size_t cell = free_cells_.back();
    free_cells_.pop_back();
    return cell;
  }

  // A Transfer is a remote memory operation. It waits for an entry of PM's table, which other
  // coroutines may hold until they continue, and then until the operation has ended.
  struct Transfer {
    Runtime& rt;
    std::uint32_t rank;
    pm_handle remote;
    std::uint64_t remote_offset;
    pm_handle local;
    std::uint64_t local_offset;
    std::uint64_t length;
    bool is_write;
    pm_op op = 0;
    int result = PM_ENOBUFS;  // until it has begun
    std::coroutine_handle<> handle{};

    void begin() {
      const auto start = is_write ? pm_write : pm_read;
      result = start(rt.raw(), rank, &remote, remote_offset, &local, local_offset, length, &op);
    }

    bool await_ready() {
      begin();
      return result != PM_SUCCESS && result != PM_ENOBUFS;
    }

    void await_suspend(std::coroutine_handle<> h) {
      handle = h;
      rt.transfers_.push_back(this);
    }

    int await_resume() const { return result; }
  };

  Transfer transfer(std::uint32_t rank, const pm_handle& remote, std::uint64_t remote_offset,
                    const pm_handle& local, std::uint64_t local_offset, std::uint64_t length,
                    bool is_write) {
    return {*this, rank, remote, remote_offset, local, local_offset, length, is_write};
  }

  template <class T>
  Task<void> move_array(GlobalPtr<T> there, std::span<std::byte> here, bool is_write) {
    pm::Region region(raw(), here);
    check(co_await transfer(there.rank, there.memory, there.offset(), region.handle(), 0,
                            here.size(), is_write));
  }

  pm::Context& context_;
  std::vector<Cell> scratch_;
  pm_handle scratch_handle_{};
  std::vector<std::size_t> free_cells_;
  std::unordered_map<std::uint64_t, std::function<void(std::span<const std::byte>)>> futures_;
  std::uint64_t next_future_ = 1;
  std::map<std::uint64_t, Collective> collectives_;
  std::uint64_t next_collective_ = 0;
  std::deque<Parcel> outbox_;
  bool is_buffer_lent_ = false;
  std::deque<std::coroutine_handle<>> yielded_;
  std::vector<Transfer*> transfers_;
  std::vector<Task<void>> spawned_;
  // The keys are region and nonce of the handle.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<Allocation>> allocations_;
};

namespace detail {

template <class F, class R>
Task<void> call_task(Runtime& rt, F f, std::function<void(std::span<const std::byte>)> answer) {
  if constexpr (std::is_void_v<R>) {
    co_await f(rt);
    answer({});
  } else {
    const R result = co_await f(rt);
    answer(std::as_bytes(std::span(&result, 1)));
  }
}

template <class F>
void Entry<F>::call(Runtime& rt, std::uint32_t source, std::uint64_t reply_to,
                    std::span<const std::byte> object) {
  using Returned = std::invoke_result_t<F, Runtime&>;
  using R = typename ResultOf<Returned>::type;
  if (object.size() != sizeof(F)) throw std::runtime_error("function object has a wrong size");
  // F need not be default constructible, so its bytes are copied to raw storage.
  alignas(F) std::byte storage[sizeof(F)];
  std::memcpy(storage, object.data(), sizeof(F));
  F& f = *std::launder(reinterpret_cast<F*>(storage));
  if constexpr (ResultOf<Returned>::kIsTask) {
    std::function<void(std::span<const std::byte>)> answer =
        [&rt, source, reply_to](std::span<const std::byte> bytes) {
          rt.reply(source, reply_to, bytes);
        };
    rt.spawn(call_task<F, R>(rt, f, std::move(answer)));
  } else if constexpr (std::is_void_v<R>) {
    f(rt);
    rt.reply(source, reply_to, {});
  } else {
    const R result = f(rt);
    rt.reply(source, reply_to, std::as_bytes(std::span(&result, 1)));
  }
}

}  // namespace detail

}  // namespace mttl

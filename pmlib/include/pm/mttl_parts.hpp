// These parts of MTTL do not need its runtime: tasks, synchronisation variables, futures, global
// pointers and the table of functions. pm/mttl.hpp includes them.
#pragma once

#include "../pm.hpp"

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mttl {

template <class T>
concept Portable = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

class Runtime;

// --- tasks -------------------------------------------------------------------------------------

template <class T>
class Task;

namespace detail {

struct PromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::exception_ptr error;

  struct Final {
    bool await_ready() const noexcept { return false; }

    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) const noexcept {
      return self.promise().continuation;
    }

    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }

  Final final_suspend() const noexcept { return {}; }

  void unhandled_exception() { error = std::current_exception(); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();

  void return_value(T result) { value = std::move(result); }

  T take() {
    if (error) std::rethrow_exception(error);
    return std::move(*value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();

  void return_void() const {}

  void take() const {
    if (error) std::rethrow_exception(error);
  }
};

}  // namespace detail

// A Task is a coroutine that starts when it is awaited or spawned. The object owns the coroutine's
// frame.
template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Result = T;

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool is_done() const { return handle_.done(); }

  void start() const { handle_.resume(); }

  T take() const { return handle_.promise().take(); }

  bool await_ready() const noexcept { return false; }

  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) const noexcept {
    handle_.promise().continuation = waiting;
    return handle_;
  }

  T await_resume() const { return take(); }

 private:
  std::coroutine_handle<promise_type> handle_;
};

template <class T>
Task<T> detail::Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}

inline Task<void> detail::Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

namespace detail {

template <class T>
struct ResultOf {
  using type = T;
  static constexpr bool kIsTask = false;
};

template <class T>
struct ResultOf<Task<T>> {
  using type = T;
  static constexpr bool kIsTask = true;
};

}  // namespace detail

// --- synchronisation variable ------------------------------------------------------------------

// A Sync is a queue of values between coroutines of one rank: get() waits until there is a value.
// Other ranks put values by invoking a function that calls put(). Values are returned in the order
// of put(), and waiting coroutines continue in the order of get().
template <class T>
class Sync {
 public:
  void put(T value) {
    values_.push_back(std::move(value));
    if (waiting_.empty()) return;
    const std::coroutine_handle<> first = waiting_.front();
    waiting_.pop_front();
    first.resume();
  }

  bool has_value() const { return !values_.empty(); }

  // Returns the number of values that no coroutine has taken yet.
  std::size_t size() const { return values_.size(); }

  auto get() {
    struct Get {
      Sync& sync;

      bool await_ready() const { return sync.has_value() && sync.waiting_.empty(); }

      void await_suspend(std::coroutine_handle<> h) const { sync.waiting_.push_back(h); }

      T await_resume() const {
        T value = std::move(sync.values_.front());
        sync.values_.pop_front();
        return value;
      }
    };

    return Get{*this};
  }

 private:
  std::deque<T> values_;
  std::deque<std::coroutine_handle<>> waiting_;
};

// A Future is the result of an invocation in flight. It may be awaited only once.
template <class T>
class Future {
 public:
  struct State {
    std::optional<std::vector<std::byte>> reply;
    std::coroutine_handle<> waiting;
  };

  explicit Future(std::shared_ptr<State> state) : state_(std::move(state)) {}

  bool is_ready() const { return state_->reply.has_value(); }

  bool await_ready() const { return is_ready(); }

  void await_suspend(std::coroutine_handle<> h) const { state_->waiting = h; }

  T await_resume() const {
    if constexpr (!std::is_void_v<T>) {
      if (state_->reply->size() != sizeof(T)) throw std::runtime_error("reply has a wrong size");
      T value;
      std::memcpy(&value, state_->reply->data(), sizeof value);
      return value;
    }
  }

 private:
  std::shared_ptr<State> state_;
};

// --- global pointers ---------------------------------------------------------------------------

// A GlobalPtr is a pointer to objects of type T in the memory of some rank. It may be sent to any
// rank.
template <Portable T>
struct GlobalPtr {
  std::uint32_t rank = 0;
  pm_handle memory{};
  std::uint64_t index = 0;

  friend GlobalPtr operator+(GlobalPtr p, std::int64_t n) {
    p.index += static_cast<std::uint64_t>(n);
    return p;
  }

  std::uint64_t offset() const { return index * sizeof(T); }
};

// --- handlers ----------------------------------------------------------------------------------

namespace detail {

using Handler = void (*)(Runtime&, std::uint32_t source, std::uint64_t reply_to,
                         std::span<const std::byte> object);

// A function type is identified by a hash of its mangled name, because addresses differ from rank
// to rank. Every type that a program invokes is registered before main().
inline std::unordered_map<std::uint64_t, Handler>& handlers() {
  static std::unordered_map<std::uint64_t, Handler> table;
  return table;
}

inline std::uint64_t hash_of(const char* name) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (; *name != '\0'; ++name) {
    hash = (hash ^ static_cast<unsigned char>(*name)) * 1099511628211ULL;
  }
  return hash;
}

constexpr std::uint64_t kReply = 0;  // not a handler: marks the answer to an invocation

struct CallHeader {
  std::uint64_t handler;
  std::uint64_t reply_to;  // future of the invoking rank; 0 = no answer requested
};

template <class F>
struct Entry {
  static void call(Runtime& rt, std::uint32_t source, std::uint64_t reply_to,
                   std::span<const std::byte> object);

  static std::uint64_t enter() {
    const std::uint64_t id = hash_of(typeid(F).name());
    if (!handlers().emplace(id, &call).second)
      throw std::logic_error("two functions have the same name");
    return id;
  }

  static inline const std::uint64_t kId = enter();
};

}  // namespace detail

}  // namespace mttl

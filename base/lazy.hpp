#pragma once
// Lazy holds a value that equals the default in most of many objects. It takes the space of a
// pointer until it is changed. Copies are deep. It is free of Asio, so that `gang/` can use it.

#include <memory>
#include <utility>

namespace score::inline base {

template <class T>
class Lazy {
 public:
  Lazy() = default;

  Lazy(const Lazy& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}

  Lazy(Lazy&&) noexcept = default;

  Lazy& operator=(const Lazy& other) { return *this = Lazy(other); }

  Lazy& operator=(Lazy&&) noexcept = default;
  ~Lazy() = default;

  // The reference is valid until the next edit() or reset().
  const T& operator*() const { return value_ ? *value_ : none(); }

  const T* operator->() const { return &**this; }

  // Returns the value for changes and allocates it if necessary.
  T& edit() {
    if (!value_) value_ = std::make_unique<T>();
    return *value_;
  }

  // Restores the default value.
  void reset() { value_.reset(); }

  friend bool operator==(const Lazy& a, const Lazy& b) { return *a == *b; }

 private:
  static const T& none() {
    static const T value{};
    return value;
  }

  std::unique_ptr<T> value_;
};

}  // namespace score::inline base

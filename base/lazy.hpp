#pragma once
// A value that is the default one in most of many objects. It takes a pointer until it is changed.
// Copies are deep. Asio-free, for `gang/` too.

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

  // Valid until the next edit() or reset().
  const T& operator*() const { return value_ ? *value_ : none(); }

  const T* operator->() const { return &**this; }

  // To change it.
  T& edit() {
    if (!value_) value_ = std::make_unique<T>();
    return *value_;
  }

  // The default value again.
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

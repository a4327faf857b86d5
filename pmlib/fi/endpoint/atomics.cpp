#include "pmlib/fi/endpoint/atomics.hpp"

#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace score::pm::fi {

namespace {

template <class T>
constexpr bool kIsComplex = !std::is_arithmetic_v<T>;

template <class T>
T combine_ordered(fi_op operation, T old, T operand) {
  switch (operation) {
    case FI_MIN:
      return operand < old ? operand : old;
    case FI_MAX:
      return operand > old ? operand : old;
    default:
      return old;
  }
}

// Integers wrap around, so the arithmetic is unsigned.
template <class T>
T combine_numbers(fi_op operation, T old, T operand) {
  if constexpr (std::is_integral_v<T>) {
    const auto a = static_cast<std::uint64_t>(old);
    const auto b = static_cast<std::uint64_t>(operand);
    return static_cast<T>(operation == FI_SUM ? a + b : a * b);
  } else {
    return operation == FI_SUM ? old + operand : old * operand;
  }
}

template <class T>
T combine_bits(fi_op operation, T old, T operand) {
  switch (operation) {
    case FI_BOR:
      return static_cast<T>(old | operand);
    case FI_BAND:
      return static_cast<T>(old & operand);
    default:
      return static_cast<T>(old ^ operand);
  }
}

template <class T>
T combine_truth(fi_op operation, T old, T operand) {
  const bool a = old != T();
  const bool b = operand != T();
  if (operation == FI_LOR) return T(a || b);
  if (operation == FI_LAND) return T(a && b);
  return T(a != b);
}

template <class T>
bool is_swapped(fi_op operation, T old, T compare) {
  if (operation == FI_CSWAP) return compare == old;
  if (operation == FI_CSWAP_NE) return compare != old;
  if constexpr (!kIsComplex<T>) {
    if (operation == FI_CSWAP_LE) return compare <= old;
    if (operation == FI_CSWAP_LT) return compare < old;
    if (operation == FI_CSWAP_GE) return compare >= old;
    if (operation == FI_CSWAP_GT) return compare > old;
  }
  return false;
}

template <class T>
T result_of(fi_op operation, T old, T operand, T compare) {
  switch (operation) {
    case FI_ATOMIC_READ:
      return old;
    case FI_ATOMIC_WRITE:
      return operand;
    case FI_SUM:
    case FI_PROD:
      return combine_numbers(operation, old, operand);
    case FI_LOR:
    case FI_LAND:
    case FI_LXOR:
      return combine_truth(operation, old, operand);
    default:
      break;
  }
  if (operation >= FI_CSWAP && operation <= FI_CSWAP_GT) {
    return is_swapped(operation, old, compare) ? operand : old;
  }
  if constexpr (std::is_integral_v<T>) {
    if (operation == FI_MSWAP) return static_cast<T>((operand & compare) | (old & ~compare));
    if (operation == FI_BOR || operation == FI_BAND || operation == FI_BXOR) {
      return combine_bits(operation, old, operand);
    }
  }
  if constexpr (!kIsComplex<T>) return combine_ordered(operation, old, operand);
  return old;
}

template <class T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value{};
  if (!bytes.empty()) std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void apply(fi_op operation, std::span<std::byte> memory, std::span<const std::byte> operands,
           std::span<const std::byte> compare) {
  for (std::size_t i = 0; i < memory.size() / sizeof(T); ++i) {
    const T now = result_of<T>(operation, element<T>(memory, i), element<T>(operands, i),
                               element<T>(compare, i));
    std::memcpy(memory.data() + i * sizeof(T), &now, sizeof(T));
  }
}

// Calls `f` with a value of the type; returns false if there is no such type.
template <class F>
bool with_type(fi_datatype datatype, F f) {
  switch (datatype) {
    case FI_INT8:
      return f(std::int8_t());
    case FI_UINT8:
      return f(std::uint8_t());
    case FI_INT16:
      return f(std::int16_t());
    case FI_UINT16:
      return f(std::uint16_t());
    case FI_INT32:
      return f(std::int32_t());
    case FI_UINT32:
      return f(std::uint32_t());
    case FI_INT64:
      return f(std::int64_t());
    case FI_UINT64:
      return f(std::uint64_t());
    case FI_FLOAT:
      return f(float());
    case FI_DOUBLE:
      return f(double());
    case FI_FLOAT_COMPLEX:
      return f(std::complex<float>());
    case FI_DOUBLE_COMPLEX:
      return f(std::complex<double>());
    case FI_LONG_DOUBLE:
      return f(static_cast<long double>(0));
    case FI_LONG_DOUBLE_COMPLEX:
      return f(std::complex<long double>());
    default:
      return false;
  }
}

template <class T>
bool has_operation(fi_op operation) {
  switch (operation) {
    case FI_SUM:
    case FI_PROD:
    case FI_LOR:
    case FI_LAND:
    case FI_LXOR:
    case FI_ATOMIC_READ:
    case FI_ATOMIC_WRITE:
    case FI_CSWAP:
    case FI_CSWAP_NE:
      return true;
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
    case FI_MSWAP:
      return std::is_integral_v<T>;
    default:
      return !kIsComplex<T> && operation >= FI_MIN && operation <= FI_MSWAP;
  }
}

bool has_form(AtomicForm form, fi_op operation) {
  const bool compares = operation >= FI_CSWAP && operation <= FI_MSWAP;
  switch (form) {
    case AtomicForm::Plain:
      return !compares && operation != FI_ATOMIC_READ;
    case AtomicForm::Fetch:
      return !compares;
    case AtomicForm::Compare:
      return compares;
  }
  return false;
}

}  // namespace

std::size_t atomic_bytes(AtomicForm form, fi_op operation, fi_datatype datatype) {
  if (!has_form(form, operation)) return 0;
  std::size_t bytes = 0;
  with_type(datatype, [&]<class T>(T) {
    if (has_operation<T>(operation)) bytes = sizeof(T);
    return true;
  });
  return bytes;
}

void apply_atomic(fi_op operation, fi_datatype datatype, std::span<std::byte> memory,
                  std::span<const std::byte> operands, std::span<const std::byte> compare) {
  with_type(datatype, [&]<class T>(T) {
    apply<T>(operation, memory, operands, compare);
    return true;
  });
}

}  // namespace score::pm::fi

// Converts single members. The conversions that generate_table makes (proto/options.proto) consist
// of these functions. The type of the member decides what a number of the message becomes.
#pragma once

#include "proto/frames/field_check.hpp"

#include <boost/pfr/tuple_size.hpp>
#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace score::proto {

template <class Struct>
inline constexpr std::size_t member_count = boost::pfr::tuple_size_v<std::remove_cvref_t<Struct>>;

// Returns the number that stands for an id, size, time or enumerator in messages.
template <class T>
constexpr auto number_of(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::to_underlying(value);
  } else if constexpr (requires { value.time_since_epoch(); }) {
    return value.time_since_epoch().count();
  } else if constexpr (requires { value.count(); }) {
    return value.count();
  } else if constexpr (requires { value.value(); }) {
    return value.value();
  } else {
    return value;
  }
}

// Returns the value for which the number stands: the inverse of number_of().
template <class T, class Number>
constexpr T value_of(Number number) {
  if constexpr (requires { typename T::clock; }) {
    return T(typename T::duration(number));
  } else {
    return static_cast<T>(number);
  }
}

// Rejects a number that the member cannot hold. The enumerators of an enum are unknown here, so its
// field must have been checked (kIsLimited).
template <bool kIsLimited, class T, class Number>
void read_number(FieldCheck& check, std::string_view field, Number number, T& out) {
  static_assert(kIsLimited || !std::is_enum_v<T>, "the field of an enum needs the rule `most`");
  using Held = decltype(number_of(out));
  if constexpr (!std::is_same_v<Held, Number> && !std::is_enum_v<T>) {
    check.within(field, number, std::numeric_limits<Held>::min(), std::numeric_limits<Held>::max());
  }
  out = value_of<T>(number);
}

// A message that is missing is read as an empty one, except for an optional member.
template <class Message, class T>
void read_part(FieldCheck& check, std::string_view field, bool /*is_sent*/, const Message& in,
               T& out) {
  FieldCheck part(check, field);
  read(part, in, out);
}

template <class Message, class T>
void read_part(FieldCheck& check, std::string_view field, bool is_sent, const Message& in,
               std::optional<T>& out) {
  out.reset();
  if (is_sent) read_part(check, field, true, in, out.emplace());
}

// Uses the memory of `out` again.
template <class List, class T>
void read_list(FieldCheck& check, std::string_view field, const List& in, std::vector<T>& out) {
  if (!check.ok()) return;
  out.resize(static_cast<std::size_t>(in.size()));
  auto next = out.begin();
  for (const auto& item : in) {
    if constexpr (std::is_same_v<T, std::string>) {
      *next++ = item;
    } else if constexpr (std::is_class_v<std::remove_cvref_t<decltype(item)>>) {
      read_part(check, field, true, item, *next++);
      if (!check.ok()) return;
    } else {
      read_number<false>(check, field, item, *next++);
    }
  }
}

template <class List>
void check_list(FieldCheck& check, std::string_view field, const List& in) {
  for (const auto& item : in) {
    if (!check.ok()) return;
    FieldCheck part(check, field);
    check_rules(part, item);
  }
}

template <class T, class List>
void add_all(const std::vector<T>& in, List& out) {
  if (in.empty()) return;
  out.Reserve(static_cast<int>(in.size()));
  for (const T& item : in) {
    if constexpr (std::is_same_v<T, std::string>) {
      *out.Add() = item;
    } else {
      out.Add(number_of(item));
    }
  }
}

}  // namespace score::proto

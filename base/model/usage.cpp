#include "base/model/usage.hpp"

#include <algorithm>

namespace score::base {

namespace {

template <class Number>
void add(Number& to, Number more) {
  to = std::min(to + more, static_cast<Number>(Usage::kMost));
}

void write_value(JsonWriter& json, Duration value) {
  json.fixed(std::chrono::duration<double>(value).count(), 9);
}

void write_value(JsonWriter& json, Bytes value) {
  json.value(value.value());
}

template <class Number>
void write_value(JsonWriter& json, Number value) {
  json.value(value);
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  add(cpu_user, other.cpu_user);
  add(cpu_system, other.cpu_system);
  memory_peak = std::max(memory_peak, other.memory_peak);
  add(memory_peak_sum, other.memory_peak_sum);
  add(page_faults, other.page_faults);
  add(read, other.read);
  add(write, other.write);
  add(pm_messages, other.pm_messages);
  add(pm_sent, other.pm_sent);
  add(switches_voluntary, other.switches_voluntary);
  add(switches_involuntary, other.switches_involuntary);
  nodes_unknown += other.nodes_unknown;
  add(paged_out, other.paged_out);
  add(paged_in, other.paged_in);
  add(parked, other.parked);
  return *this;
}

void Usage::add_step(const Usage& step) {
  const Bytes largest = std::max(memory_peak_sum, step.memory_peak_sum);
  *this += step;
  memory_peak_sum = largest;
}

void write_usage(JsonWriter& json, const Usage& usage) {
  each_value(usage, [&json](std::string_view key, const auto& value) {
    json.key(key);
    write_value(json, value);
  });
}

}  // namespace score::base

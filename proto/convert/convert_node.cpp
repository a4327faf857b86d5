// Implements both directions of the head's link to a node. Each message has a pair of functions:
// `fill` (value to message) and `take` (message to value, checked). The variants are converted with
// them.

#include "base/limits.hpp"
#include "proto/convert/convert.hpp"
#include "proto/convert/placed_tasks.hpp"
#include "proto/frames/field_check.hpp"

#include <csignal>
#include <sys/types.h>
#include <type_traits>

namespace score::proto {

namespace limits = base::limits;
using base::AttemptId;
using base::Result;

namespace {

// ---- messages that name an attempt and nothing more

template <class Value, class Message>
struct AttemptOnly {
  using value_type = Value;
  using message_type = Message;

  static void fill(const Value& value, Message& out) { out.set_attempt(value.attempt.value()); }

  static Result<Value> take(const Message& message) {
    FieldCheck check("attempt");
    check.not_zero("attempt", message.attempt());
    if (!check.ok()) return check.error();
    return Value{AttemptId(message.attempt())};
  }
};

template <class Value>
struct Codec;

template <>
struct Codec<base::StartTasks> : AttemptOnly<base::StartTasks, wire::StartTasks> {};

template <>
struct Codec<base::KillTasks> : AttemptOnly<base::KillTasks, wire::KillTasks> {};

template <>
struct Codec<base::ForgetTasks> : AttemptOnly<base::ForgetTasks, wire::ForgetTasks> {};

template <>
struct Codec<base::Prepared> : AttemptOnly<base::Prepared, wire::Prepared> {};

template <>
struct Codec<base::Started> : AttemptOnly<base::Started, wire::Started> {};

// ---- head -> node

template <>
struct Codec<base::PrepareTasks> {
  using message_type = wire::PrepareTasks;

  static void fill(const base::PrepareTasks& value, wire::PrepareTasks& out) {
    fill_placed(value.placed, out);
    out.set_user(value.placed.user.value());
    out.set_spec(value.spec);
  }

  static Result<base::PrepareTasks> take(const wire::PrepareTasks& message) {
    auto placed = take_placed("PrepareTasks", message);
    if (!placed) return placed.error();
    placed->user = base::UserId(message.user());
    return base::PrepareTasks{std::move(*placed), message.spec()};
  }
};

template <>
struct Codec<base::SignalTasks> {
  using message_type = wire::SignalTasks;

  static void fill(const base::SignalTasks& value, wire::SignalTasks& out) {
    out.set_attempt(value.attempt.value());
    out.set_signal(value.signal);
  }

  static Result<base::SignalTasks> take(const wire::SignalTasks& message) {
    FieldCheck check("SignalTasks");
    check.not_zero("attempt", message.attempt());
    check.within("signal", message.signal(), 1, _NSIG - 1);
    if (!check.ok()) return check.error();
    return base::SignalTasks{AttemptId(message.attempt()), message.signal()};
  }
};

template <>
struct Codec<base::SetTimetable> {
  using message_type = wire::SetTimetable;

  static void fill(const base::SetTimetable& value, wire::SetTimetable& out) {
    out = to_wire(value.timetable);
  }

  static Result<base::SetTimetable> take(const wire::SetTimetable& message) {
    auto timetable = from_wire(message);
    if (!timetable) return timetable.error();
    return base::SetTimetable{std::move(*timetable)};
  }
};

// ---- node -> head

template <>
struct Codec<base::NodeHello> {
  using message_type = wire::NodeHello;

  static void fill(const base::NodeHello& value, wire::NodeHello& out) { out = to_wire(value); }

  static Result<base::NodeHello> take(const wire::NodeHello& message) { return from_wire(message); }
};

template <>
struct Codec<base::Refused> {
  using message_type = wire::Refused;

  static void fill(const base::Refused& value, wire::Refused& out) {
    out.set_attempt(value.attempt.value());
    out.set_exit_code(value.exit_code);
    out.set_reason(cut_reason(value.reason));
    out.set_may_retry(value.may_retry);
  }

  static Result<base::Refused> take(const wire::Refused& message) {
    FieldCheck check("Refused");
    check.not_zero("attempt", message.attempt());
    check.within("exit_code", message.exit_code(), 0, 255);
    if (!check.ok()) return check.error();
    return base::Refused{AttemptId(message.attempt()), message.exit_code(),
                         cut_reason(message.reason()), message.may_retry()};
  }
};

template <>
struct Codec<base::TaskEnded> {
  using message_type = wire::TaskEnded;

  static void fill(const base::TaskEnded& value, wire::TaskEnded& out) {
    out.set_attempt(value.attempt.value());
    *out.mutable_exit() = to_wire(value.exit);
  }

  static Result<base::TaskEnded> take(const wire::TaskEnded& message) {
    FieldCheck check("TaskEnded");
    check.not_zero("attempt", message.attempt());
    auto exit = from_wire(message.exit());
    check.part("exit", exit);
    if (!check.ok()) return check.error();
    return base::TaskEnded{AttemptId(message.attempt()), *exit};
  }
};

template <>
struct Codec<base::Exited> {
  using message_type = wire::Exited;

  static void fill(const base::Exited& value, wire::Exited& out) {
    out.set_attempt(value.attempt.value());
    to_wire(value.exits, *out.mutable_exits());
    out.set_reason(cut_reason(value.reason));
    out.set_filled_ns(value.filled.count());
    out.set_oom_kills(value.oom_kills);
  }

  static Result<base::Exited> take(const wire::Exited& message) {
    FieldCheck check("Exited");
    check.not_zero("attempt", message.attempt());
    auto exits = from_wire(message.exits());
    check.part("exits", exits);
    check.require("filled_ns", message.filled_ns() >= 0, "is negative");
    if (!check.ok()) return check.error();
    return base::Exited{AttemptId(message.attempt()), std::move(*exits),
                        cut_reason(message.reason()), base::Duration(message.filled_ns()),
                        message.oom_kills()};
  }
};

template <>
struct Codec<base::AbortRequested> {
  using message_type = wire::AbortRequested;

  static void fill(const base::AbortRequested& value, wire::AbortRequested& out) {
    out.set_attempt(value.attempt.value());
    out.set_rank(value.rank.value());
    out.set_code(value.code);
    out.set_message(cut_reason(value.message));
    out.set_asked_ns(value.asked.time_since_epoch().count());
    out.set_left(value.left);
  }

  static Result<base::AbortRequested> take(const wire::AbortRequested& message) {
    FieldCheck check("AbortRequested");
    check.not_zero("attempt", message.attempt());
    check.within("rank", message.rank(), 0, limits::kMaxTasksPerJob - 1);
    if (!check.ok()) return check.error();
    return base::AbortRequested{AttemptId(message.attempt()),
                                base::Rank(message.rank()),
                                message.code(),
                                cut_reason(message.message()),
                                TimePoint(Duration(message.asked_ns())),
                                message.left()};
  }
};

template <>
struct Codec<base::TimetableApplied> {
  using message_type = wire::TimetableApplied;

  static void fill(const base::TimetableApplied& value, wire::TimetableApplied& out) {
    out.set_epoch(value.epoch.value());
    out.set_late_ns(value.late.count());
  }

  static Result<base::TimetableApplied> take(const wire::TimetableApplied& message) {
    return base::TimetableApplied{base::Epoch(message.epoch()), base::Duration(message.late_ns())};
  }
};

template <>
struct Codec<base::ActivityChanged> {
  using message_type = wire::ActivityChanged;

  static void fill(const base::ActivityChanged& value, wire::ActivityChanged& out) {
    out.set_attempt(value.attempt.value());
    out.set_idle(value.activity.idle);
    out.set_waits(value.activity.waits);
    out.set_sent(value.activity.sent);
    out.set_received(value.activity.received);
    for (const base::TaskWait& task : value.activity.tasks) {
      auto* wait = out.add_tasks();
      wait->set_rank(task.rank);
      wait->set_call(task.call);
      wait->set_source(task.source);
      wait->set_tag(task.tag);
      wait->set_bytes(task.bytes);
    }
  }

  static Result<base::ActivityChanged> take(const wire::ActivityChanged& message) {
    FieldCheck check("ActivityChanged");
    check.not_zero("attempt", message.attempt());
    check.at_most("tasks", static_cast<std::size_t>(message.tasks_size()), limits::kMaxTaskWaits);
    for (const auto& task : message.tasks()) {
      check.at_most("call", task.call().size(), limits::kMaxCallName);
    }
    if (!check.ok()) return check.error();
    base::ActivityChanged changed{AttemptId(message.attempt()),
                                  {.idle = message.idle(),
                                   .waits = message.waits(),
                                   .sent = message.sent(),
                                   .received = message.received()}};
    for (const auto& task : message.tasks()) {
      changed.activity.tasks.push_back(
          {task.rank(), task.call(), task.source(), task.tag(), task.bytes()});
    }
    return changed;
  }
};

// Both directions of a meeting have the same fields.
template <class Value, class Message>
struct MeetingCodec {
  using message_type = Message;

  static void fill(const Value& value, Message& out) {
    out.set_attempt(value.attempt.value());
    out.set_meeting(static_cast<std::uint32_t>(value.meeting));
    out.set_boundary_ns(value.boundary.time_since_epoch().count());
  }

  static Result<Value> take(const Message& message) {
    FieldCheck check("a meeting");
    check.not_zero("attempt", message.attempt());
    if (!check.ok()) return check.error();
    if (message.meeting() >= base::kMeetings || message.boundary_ns() < 0) {
      return base::fail(WireErrc::BadMessage, "meeting {} at {}: there is none", message.meeting(),
                        message.boundary_ns());
    }
    return Value{AttemptId(message.attempt()), static_cast<base::Meeting>(message.meeting()),
                 base::TimePoint(base::Duration(message.boundary_ns()))};
  }
};

template <>
struct Codec<base::MeetingReached> : MeetingCodec<base::MeetingReached, wire::MeetingReached> {};

template <>
struct Codec<base::MetAll> : MeetingCodec<base::MetAll, wire::MetAll> {};

// ---- walking the variants

template <class Variant>
OutFrame encode_variant(const Variant& message) {
  return std::visit(
      [](const auto& value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        using Message = typename Codec<Value>::message_type;
        Message out;
        Codec<Value>::fill(value, out);
        return OutFrame{frame_type<Message>(), out.SerializeAsString()};
      },
      message);
}

template <class Variant>
struct Walk;

template <class... Values>
struct Walk<std::variant<Values...>> {
  using Variant = std::variant<Values...>;

  static bool has(FrameType type) {
    return ((type == frame_type<typename Codec<Values>::message_type>()) || ...);
  }

  static Result<Variant> decode(FrameType type, std::string_view payload) {
    std::optional<Result<Variant>> out;
    (try_one<Values>(type, payload, out), ...);
    if (out) return std::move(*out);
    return base::fail(WireErrc::UnknownType, "{} ({}) does not belong here", name_of(type),
                      static_cast<unsigned>(type));
  }

 private:
  template <class Value>
  static void try_one(FrameType type, std::string_view payload,
                      std::optional<Result<Variant>>& out) {
    using Message = typename Codec<Value>::message_type;
    if (type != frame_type<Message>()) return;
    auto message = parse<Message>(payload, name_of(type));
    if (!message) {
      out = message.error();
      return;
    }
    auto value = Codec<Value>::take(*message);
    if (value) {
      out = Variant(std::move(*value));
    } else {
      out = value.error();
    }
  }
};

}  // namespace

OutFrame encode(const base::HeadToNode& message) {
  return encode_variant(message);
}

OutFrame encode(const base::NodeToHead& message) {
  return encode_variant(message);
}

bool is_head_to_node(FrameType type) {
  return Walk<base::HeadToNode>::has(type);
}

bool is_node_to_head(FrameType type) {
  return Walk<base::NodeToHead>::has(type);
}

Result<base::HeadToNode> decode_head_to_node(FrameType type, std::string_view payload) {
  return Walk<base::HeadToNode>::decode(type, payload);
}

Result<base::NodeToHead> decode_node_to_head(FrameType type, std::string_view payload) {
  return Walk<base::NodeToHead>::decode(type, payload);
}

}  // namespace score::proto

// Converts the variants of the head's link to a node, with the conversions of their values.

#include "proto/convert/convert.hpp"
#include "proto/frames/hello.hpp"

#include <optional>
#include <type_traits>

namespace score::proto {

using base::Result;

namespace {

template <class Value>
using MessageOf = decltype(to_wire(std::declval<const Value&>()));

template <class Variant>
OutFrame encode_variant(const Variant& message) {
  return std::visit(
      [](const auto& value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        constexpr FrameType kType = frame_type<MessageOf<Value>>();
        if constexpr (std::is_same_v<Value, base::NodeHello>) {
          return OutFrame{kType, make_hello(value).SerializeAsString()};
        } else {
          return OutFrame{kType, to_wire(value).SerializeAsString()};
        }
      },
      message);
}

template <class Variant>
struct Walk;

template <class... Values>
struct Walk<std::variant<Values...>> {
  using Variant = std::variant<Values...>;

  static bool has(FrameType type) { return ((type == frame_type<MessageOf<Values>>()) || ...); }

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
    using Message = MessageOf<Value>;
    if (type != frame_type<Message>()) return;
    auto message = parse<Message>(payload, name_of(type));
    if (!message) {
      out = message.error();
      return;
    }
    auto value = from_wire(*message);
    if (value) {
      out = Variant(std::move(*value));
    } else {
      out = value.error();
    }
  }
};

}  // namespace

wire::NodeHello make_hello(const base::NodeHello& hello) {
  auto out = to_wire(hello);
  out.set_lowest_version(spoken_versions().lowest);
  out.set_highest_version(spoken_versions().highest);
  return out;
}

OutFrame encode(const base::HeadToNode& message) {
  return encode_variant(message);
}

OutFrame encode(const base::NodeToHead& message) {
  return encode_variant(message);
}

bool is_head_to_node(FrameType type) {
  return Walk<base::HeadToNode>::has(type);
}

Result<base::HeadToNode> decode_head_to_node(FrameType type, std::string_view payload) {
  return Walk<base::HeadToNode>::decode(type, payload);
}

Result<base::NodeToHead> decode_node_to_head(FrameType type, std::string_view payload) {
  return Walk<base::NodeToHead>::decode(type, payload);
}

}  // namespace score::proto

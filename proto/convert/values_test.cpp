// Tests convert_values.cpp, checks.cpp and convert_node.cpp with random messages.

#include "proto/convert/convert.hpp"
#include "proto/convert/random_messages.hpp"

#include <algorithm>
#include <variant>

namespace score::proto {
namespace {

void name_by_place(google::protobuf::RepeatedPtrField<wire::GenericResource>& generic) {
  for (int i = 0; i < generic.size(); ++i) generic.Mutable(i)->set_name("g" + std::to_string(i));
}

void make_valid(Random& random, wire::ResourceRequest& message) {
  if (random.one_in(2)) message.set_inside(0);
  if (message.inside() != 0 || message.allocation()) message.set_overlay(false);
  if (message.inside() != 0) message.set_allocation(false);
  for (auto& feature : *message.mutable_features()) feature = random.one_in(2) ? "a" : "a|b";
  name_by_place(*message.mutable_generic());
}

void make_valid(Random& /*random*/, wire::NodeHello& message) {
  name_by_place(*message.mutable_generic());
}

void make_valid(Random& random, wire::SetTimetable& message) {
  const bool has_slices = random.one_in(2);
  message.set_slice_ns(has_slices ? 50'000'000 : 0);
  message.set_first_slice_ns(has_slices ? random.number<std::int64_t>(1, 50'000'000) : 0);
  std::int64_t end = 0;
  for (auto& segment : *message.mutable_segments()) {
    segment.set_offset_ns(end);
    segment.set_length_ns(random.number<std::int64_t>(1, 1'000'000'000));
    end += segment.length_ns();
    auto& jobs = *segment.mutable_jobs();
    std::sort(jobs.begin(), jobs.end());
    jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  }
  message.set_cycle_ns(end);
}

// Serves the messages with the fields of base::PlacedTasks.
template <class Message>
void make_valid(Random& random, Message& message) {
  if (message.tasks_on_node().empty()) message.add_tasks_on_node(3);
  const int nodes = message.tasks_on_node_size();
  message.set_node_index(random.number<std::uint32_t>(0, nodes - 1));
  message.mutable_nodes()->Resize(random.one_in(2) ? nodes : 0, 7);
}

}  // namespace
}  // namespace score::proto

#include "proto/model_values_test.inc"

namespace score::proto {
namespace {

template <class Message>
class ModelValues : public ::testing::Test {};

TYPED_TEST_SUITE(ModelValues, model_messages);

TYPED_TEST(ModelValues, ValidMessagesRoundTrip) {
  expect_round_trips<TypeParam>();
}

TYPED_TEST(ModelValues, AnyMessageGivesValueOrError) {
  expect_value_or_error<TypeParam>();
}

// Sends one message of each alternative of the variant.
template <class Variant, class Decode, std::size_t... kIndex>
void expect_all_decoded(Decode decode, std::index_sequence<kIndex...> /*all*/) {
  Random random;
  const auto expect_decoded = [&]<class Value>(const Value& sample) {
    auto message = to_wire(sample);
    randomize(random, message);
    const OutFrame frame = encode(Variant(*from_wire(message)));
    const auto back = decode(frame.type, frame.payload);
    ASSERT_TRUE(back.has_value()) << back.error().message();
    EXPECT_TRUE(std::holds_alternative<Value>(*back));
    EXPECT_EQ(encode(*back).payload, frame.payload);
  };
  (expect_decoded(std::variant_alternative_t<kIndex, Variant>()), ...);
}

TEST(HeadToNode, EveryMessageRoundTrips) {
  using All = std::make_index_sequence<std::variant_size_v<base::HeadToNode>>;
  expect_all_decoded<base::HeadToNode>(decode_head_to_node, All());
}

TEST(NodeToHead, EveryMessageRoundTrips) {
  using All = std::make_index_sequence<std::variant_size_v<base::NodeToHead>>;
  expect_all_decoded<base::NodeToHead>(decode_node_to_head, All());
}

}  // namespace
}  // namespace score::proto

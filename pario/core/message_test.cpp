#include "pario/core/message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace score::pario {
namespace {

Request sample(Op op) {
  Request request{.op = op, .flags = 1, .tag = 77, .id = kRootId};
  if (op == Op::Move || op == Op::Lookup || op == Op::Create || op == Op::Unlink ||
      op == Op::Insert || op == Op::Rename || op == Op::ReadEntries || op == Op::GetValue ||
      op == Op::SetValue) {
    request.name = "a name";
  }
  if (op == Op::Rename || op == Op::Move) request.name2 = "new";
  if (op == Op::Move) request.other = 5;
  if (op == Op::Create || op == Op::Insert || op == Op::Move || op == Op::SetMode)
    request.mode = 0100644;
  if (op == Op::Insert || op == Op::Rename || op == Op::Truncate || op == Op::SetTime ||
      op == Op::Unlink || op == Op::Reserve ||
      (op >= Op::StageTransaction && op != Op::FillTable && op != Op::Destroy &&
       op != Op::LogTransaction)) {
    request.number = 4096;
  }
  if (op == Op::StageTransaction || op == Op::PrepareTransaction || op == Op::FillTable) {
    request.mode = 2;
  }
  if (op == Op::FillTable || op == Op::LogTransaction) request.data_bytes = 7;
  if (op == Op::StageTransaction) request.extents = {{0, 10}, {kMaxOffset - 5, 5}};
  if (op == Op::StageTransaction) request.data_bytes = 15;
  if (op == Op::PrepareTransaction || op == Op::FinishTransaction) request.other = 1;
  if (op == Op::PrepareTransaction) request.servers = {0, 1, 4095};
  if (op == Op::Reserve || op == Op::Lease || op == Op::Gather) request.other = 5;
  if (op == Op::Lease || op == Op::Gather || op == Op::OpenChannel) request.number = 4096;
  if (op == Op::SetTime || op == Op::Allocate) request.other = 9;
  if (op == Op::SetTime || op == Op::SetValue || op == Op::Allocate) request.mode = 3;
  if (op == Op::SetValue) request.data_bytes = 7;
  if (op == Op::Gather) request.mode = pack_mode({.rank = 63, .error = 5});
  if (op == Op::OpenChannel) request.mode = 2;
  if (op == Op::Read || op == Op::Write) request.extents = {{0, 10}, {kMaxOffset - 5, 5}};
  if (op == Op::Copy) request.extents = {{kMaxOffset - 5, 5}};
  if (op == Op::Copy || op == Op::SettleTime) request.other = 5;
  if (op == Op::Write) request.data_bytes = 15;
  return request;
}

bool parses(const std::string& bytes) {
  Request request;
  return parse_request(bytes, request);
}

std::string bytes_of(const Request& request) {
  std::string bytes;
  append_request(request, bytes);
  return bytes;
}

TEST(Message, CopyHasOneExtentAndTwoFiles) {
  const Request good = sample(Op::Copy);
  EXPECT_TRUE(parses(bytes_of(good)));
  Request bad = good;
  bad.extents.push_back({0, 1});
  EXPECT_FALSE(parses(bytes_of(bad)));
  bad = good;
  bad.other = 0;
  EXPECT_FALSE(parses(bytes_of(bad)));
  bad = good;
  bad.mode = kMaxServers;
  EXPECT_FALSE(parses(bytes_of(bad)));
  bad = good;
  bad.number = kMaxOffset - 4;
  EXPECT_FALSE(parses(bytes_of(bad))) << "it would end beyond the largest offset";
  bad = good;
  bad.extents = {{0, kMaxDataBytes + 1}};
  EXPECT_FALSE(parses(bytes_of(bad)));
}

TEST(Message, EveryRequestSurvivesEncoding) {
  for (unsigned op = 1; op <= static_cast<unsigned>(Op::Last); ++op) {
    const Request sent = sample(static_cast<Op>(op));
    const std::string bytes = bytes_of(sent);
    Request got;
    ASSERT_TRUE(parse_request(bytes, got)) << op;
    EXPECT_EQ(bytes_of(got), bytes);
    EXPECT_EQ(got.name, sent.name);
    EXPECT_EQ(got.extents, sent.extents);
    EXPECT_EQ(got.servers, sent.servers);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(parses(bytes.substr(0, length))) << op;
    }
    EXPECT_FALSE(parses(bytes + "x")) << op;
  }
}

TEST(Message, ForwardedFieldsSurviveEncoding) {
  Request sent = sample(Op::Create);
  sent.flags = kForwarded;
  sent.part = 3;
  sent.forwarded = {7, 8, kRootId, -9};
  Request got;
  const std::string bytes = bytes_of(sent);
  ASSERT_TRUE(parse_request(bytes, got));
  EXPECT_EQ(bytes_of(got), bytes);
  EXPECT_EQ(got.part, 3U);
  EXPECT_EQ(got.forwarded.new_id, kRootId);
  EXPECT_EQ(got.forwarded.time_ns, -9);
  sent.part = kMaxServers + 1;
  EXPECT_FALSE(parses(bytes_of(sent)));
}

TEST(Message, NumberOfChangeSurvivesEncoding) {
  for (unsigned op = 1; op <= static_cast<unsigned>(Op::Last); ++op) {
    Request sent = sample(static_cast<Op>(op));
    sent.flags = kOnce;
    sent.once = {99, kServerWindow - 1, 7};
    Request got;
    const std::string bytes = bytes_of(sent);
    ASSERT_EQ(parse_request(bytes, got), can_be_once(sent.op)) << op;
    if (!can_be_once(sent.op)) continue;
    EXPECT_EQ(bytes_of(got), bytes);
    sent.flags |= kForwarded;
    EXPECT_TRUE(parses(bytes_of(sent)));
    sent.once.slot = kServerWindow;
    EXPECT_FALSE(parses(bytes_of(sent)));
    sent.once = {0, 1, 7};
    EXPECT_FALSE(parses(bytes_of(sent)));
  }
}

TEST(Message, RefusesHostileListsOfServers) {
  Request request = sample(Op::PrepareTransaction);
  for (const std::vector<std::uint16_t>& servers :
       {std::vector<std::uint16_t>{}, {1, 1}, {2, 1}, {0, 2}, {1, 4096}}) {
    request.servers = servers;  // the coordinator is 1
    EXPECT_FALSE(parses(bytes_of(request)));
  }
  request.servers = {1};
  EXPECT_TRUE(parses(bytes_of(request)));
  request.number = 0;
  EXPECT_FALSE(parses(bytes_of(request)));
}

TEST(Message, RefusesHostileNames) {
  Request request = sample(Op::Lookup);
  for (const std::string& name :
       {std::string(""), std::string("."), std::string(".."), std::string("a/b"),
        std::string("/etc"), std::string("../x"), std::string("a\0b", 3), std::string(256, 'x')}) {
    request.name = name;
    EXPECT_FALSE(parses(bytes_of(request))) << name;
  }
  const std::string longest(255, 'x');
  request.name = longest;
  EXPECT_TRUE(parses(bytes_of(request)));
  Request rename = sample(Op::Rename);
  rename.name2 = "..";
  EXPECT_FALSE(parses(bytes_of(rename)));
}

TEST(Message, RefusesExtentsAtTheEdge) {
  Request request = sample(Op::Read);
  const std::uint64_t most = ~std::uint64_t{0};
  for (const Extent& extent : {Extent{0, 0}, Extent{kMaxOffset, 1}, Extent{most, 1},
                               Extent{kMaxOffset + 1, 1}, Extent{0, kMaxDataBytes + 1}}) {
    request.extents = {extent};
    EXPECT_FALSE(parses(bytes_of(request)));
  }
  request.extents.assign(kMaxExtents, {0, 1});
  EXPECT_TRUE(parses(bytes_of(request)));
  request.extents.push_back({0, 1});
  EXPECT_FALSE(parses(bytes_of(request)));
  request.extents = {{0, kMaxDataBytes}, {0, 1}};
  EXPECT_FALSE(parses(bytes_of(request)));
  request.extents.clear();
  EXPECT_FALSE(parses(bytes_of(request)));
  Request write = sample(Op::Write);
  write.data_bytes = 14;
  EXPECT_FALSE(parses(bytes_of(write)));
  Request truncate = sample(Op::Truncate);
  truncate.number = kMaxOffset + 1;
  EXPECT_FALSE(parses(bytes_of(truncate)));
}

TEST(Message, OnlySymbolicLinkIsCreatedWithData) {
  Request create = sample(Op::Create);
  create.data_bytes = 1;
  EXPECT_FALSE(parses(bytes_of(create)));
  create.mode = 0120777;
  EXPECT_TRUE(parses(bytes_of(create)));
  create.data_bytes = kMaxTargetBytes + 1;
  EXPECT_FALSE(parses(bytes_of(create)));
  create.data_bytes = 0;
  EXPECT_FALSE(parses(bytes_of(create)));
  Request value = sample(Op::SetValue);
  value.data_bytes = kMaxValueBytes + 1;
  EXPECT_FALSE(parses(bytes_of(value)));
}

TEST(Message, RefusesHeadersBeyondTheLimits) {
  std::array<char, kHeaderBytes> header{};
  Sizes sizes;
  EXPECT_FALSE(parse_sizes(header, sizes));  // operation 0
  const auto set = [&header](std::size_t at, std::uint32_t value) {
    std::memcpy(header.data() + at, &value, sizeof value);
  };
  set(0, static_cast<std::uint32_t>(Op::Write));
  EXPECT_TRUE(parse_sizes(header, sizes));
  set(8, kMaxDataBytes + 1);
  EXPECT_FALSE(parse_sizes(header, sizes));
  set(8, 0);
  set(4, kMaxBodyBytes + 1);
  EXPECT_FALSE(parse_sizes(header, sizes));
  set(4, 0);
  set(0, static_cast<std::uint32_t>(Op::Read));
  set(8, 1);  // data in a request that has none
  EXPECT_FALSE(parse_sizes(header, sizes));
  set(8, 0);
  set(0, 0xffff);
  EXPECT_FALSE(parse_sizes(header, sizes));
}

// Random bytes must cause no fault, and accepted requests must respect the limits.
TEST(Message, SurvivesRandomBytes) {
  std::mt19937 random(3);
  for (int i = 0; i < 100'000; ++i) {
    std::string bytes =
        bytes_of(sample(static_cast<Op>(1 + random() % static_cast<unsigned>(Op::Last))));
    for (unsigned k = 0; k < 1 + random() % 4; ++k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    Request request;
    if (!parse_request(bytes, request)) continue;
    EXPECT_LE(request.extents.size(), kMaxExtents);
    EXPECT_LE(request.name.size(), kMaxNameBytes);
    for (const Extent& extent : request.extents) EXPECT_TRUE(is_valid(extent));
    EXPECT_EQ(bytes_of(request).size(), bytes.size());
  }
}

TEST(Message, RepliesSurviveEncoding) {
  std::string bytes;
  put(bytes, Reply{.error = 28, .body_bytes = 48, .data_bytes = 9, .tag = 5, .number = 6});
  ASSERT_EQ(bytes.size(), kHeaderBytes);
  Reply reply;
  ASSERT_TRUE(parse_reply(std::span<const char, kHeaderBytes>(bytes.data(), bytes.size()), reply));
  EXPECT_EQ(reply.error, 28U);
  EXPECT_EQ(reply.number, 6U);
  bytes.assign(kHeaderBytes, '\xff');
  EXPECT_FALSE(parse_reply(std::span<const char, kHeaderBytes>(bytes.data(), bytes.size()), reply));
  Attributes attributes{.id = 9, .mode = 1, .wide = 1, .size = 3, .blocks = 4, .modified_ns = -5};
  std::string body;
  put(body, attributes);
  EXPECT_EQ(body.size(), sizeof(Attributes));
  Attributes got;
  ASSERT_TRUE(parse_body(body, got));
  EXPECT_EQ(got.modified_ns, -5);
  EXPECT_FALSE(parse_body(body + "x", got));
  std::string entries;
  append_entry(7, 8, "one", entries);
  append_entry(9, 8, "two", entries);
  std::vector<Entry> list;
  ASSERT_TRUE(parse_entries(entries, list));
  EXPECT_EQ(list.at(1).name, "two");
  EXPECT_FALSE(parse_entries(entries.substr(1), list));
  std::string statistics;
  put(statistics, Statistics{.used = 5, .queue = 3, .tcp_fallbacks = 9});
  EXPECT_EQ(statistics.size(), sizeof(Statistics));
  Statistics counts;
  ASSERT_TRUE(parse_body(statistics, counts));
  EXPECT_EQ(counts.used, 5U);
  EXPECT_EQ(counts.queue, 3U);
  EXPECT_EQ(counts.tcp_fallbacks, 9U);
  EXPECT_FALSE(parse_body(statistics + "x", counts));
}

TEST(Proof, DependsOnEverything) {
  const Key key{'k'};
  const ProofOf of{{1}, {2}, 3, "volume", true};
  const Proof proof = make_proof(key, of);
  EXPECT_TRUE(is_equal(proof, make_proof(key, of)));
  EXPECT_FALSE(is_equal(proof, make_proof(Key{'j'}, of)));
  for (const ProofOf& other :
       {ProofOf{{9}, {2}, 3, "volume", true}, ProofOf{{1}, {9}, 3, "volume", true},
        ProofOf{{1}, {2}, 9, "volume", true}, ProofOf{{1}, {2}, 3, "other", true},
        ProofOf{{1}, {2}, 3, "volume", false}}) {
    EXPECT_FALSE(is_equal(proof, make_proof(key, other)));
  }
}

Request remote_sample(Op op) {
  Request request = sample(op);
  request.flags = kRemote;
  request.remote = {3, 0xabcd, 4096, 1'000};
  request.places = {990, 0};
  return request;
}

TEST(Message, RemoteRequestsSurviveEncoding) {
  for (const Op op : {Op::Read, Op::Write}) {
    const std::string bytes = bytes_of(remote_sample(op));
    Request got;
    ASSERT_TRUE(parse_request(bytes, got));
    EXPECT_EQ(bytes_of(got), bytes);
    EXPECT_EQ(got.places, (std::vector<std::uint64_t>{990, 0}));
    EXPECT_EQ(got.remote.nonce, 0xabcdU);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(parses(bytes.substr(0, length)));
    }
    EXPECT_FALSE(parses(bytes + "x"));
  }
}

TEST(Message, RefusesMemoryOutsideRegion) {
  for (const std::uint64_t place : {std::uint64_t{991}, std::uint64_t{1'000}, UINT64_MAX}) {
    Request request = remote_sample(Op::Read);
    request.places[0] = place;
    EXPECT_FALSE(parses(bytes_of(request))) << place;
  }
  Request request = remote_sample(Op::Read);
  request.remote.offset = UINT64_MAX - 999;
  EXPECT_FALSE(parses(bytes_of(request)));
  request.remote.offset = UINT64_MAX - 1'000;
  EXPECT_TRUE(parses(bytes_of(request)));
}

TEST(Message, OnlyDataIsRemote) {
  for (unsigned op = 1; op <= static_cast<unsigned>(Op::Last); ++op) {
    if (static_cast<Op>(op) == Op::Read || static_cast<Op>(op) == Op::Write) continue;
    Request request = sample(static_cast<Op>(op));
    request.flags = kRemote;
    request.places.assign(request.extents.size(), 0);
    EXPECT_FALSE(parses(bytes_of(request))) << op;
  }
}

TEST(Message, OffersAndPlacesSurviveEncoding) {
  const AddressBytes address{127, 0, 0, 1, 30, 255};
  EXPECT_EQ(unpack_address(pack_address(address)), address);
  std::string bytes;
  put(bytes, ChannelOffer{0x1234567890abcdef, pack_address(address), 4'000'000'000, 5, 6, 1'424});
  ASSERT_EQ(bytes.size(), sizeof(ChannelOffer));
  ChannelOffer offer;
  ASSERT_TRUE(parse_body(bytes, offer));
  EXPECT_EQ(offer.process, 4'000'000'000);
  EXPECT_EQ(offer.client_context, 6U);
  EXPECT_EQ(offer.payload, 1'424U);
  EXPECT_EQ(unpack_address(std::uint64_t{1'424} << 48 | pack_address(address)), address);
  EXPECT_FALSE(parse_body(bytes + "x", offer));
  EXPECT_FALSE(parse_body(bytes.substr(1), offer));
  std::string place_bytes;
  put(place_bytes, DataPlace{1, 2, 3, UINT64_MAX});
  DataPlace place;
  ASSERT_TRUE(parse_body(place_bytes, place));
  EXPECT_EQ(place.inode, UINT64_MAX);
  EXPECT_FALSE(parse_body(place_bytes + "x", place));
  EXPECT_FALSE(parse_body("", place));
}

TEST(Message, PartsOfGatheringSurviveEncoding) {
  const Gathered part{
      .sequence = UINT32_MAX, .size = 1U << 20, .rank = (1U << 20) - 1, .error = 28};
  const Gathered got = unpack_gathered(pack_mode(part), pack_other(part));
  EXPECT_EQ(got.sequence, part.sequence);
  EXPECT_EQ(got.size, part.size);
  EXPECT_EQ(got.rank, part.rank);
  EXPECT_EQ(got.error, part.error);
}

// FNV-1a, so that the recorded bytes take one number per message.
std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

// A client and a server of different releases must understand each other, so these bytes never
// change without a new version in kMagic.
TEST(Message, RequestBytesAreThoseOfProtocolVersion) {
  constexpr std::array<std::uint64_t, 36> kRecorded{
      0x392b2dc7c22efdff, 0x44c5a9a186f0c677, 0xa73c8a6726061d5d, 0xb8bde3bcb9fdd03d,
      0xd0ac9adb90be5c81, 0x891b6ac6134d0f04, 0xe353ff21d679441a, 0xc5ab16319e9c6ba4,
      0xaaa434abb6981ecb, 0xc03f5fdfda0cf798, 0x42cf58bef82d052d, 0xcc135981f1bc54be,
      0x0d321751c367decf, 0xa48ff8e9c1909f44, 0x5166c0e601e57981, 0x405fcd3ffab753d1,
      0xe5886f5f9cf89ec3, 0x1db0747a91f7be55, 0xe87c019ab77b1c01, 0x286541eb9a240f0b,
      0x101256f55102ad90, 0x91ed231bd5dfc94c, 0x32c021c084348864, 0x0b22ed962c8dc2d2,
      0x3021fc1f59727903, 0x412b8a81126034d0, 0xbe815d4cd55a8a01, 0x3989feddf8e432bf,
      0x7d46f72f35cc8d87, 0x785870f01640bfac, 0x2f62f6b09048e115, 0xc6893b8428420bdc,
      0x26f3d0e8016197dc, 0x7b772b4ba7b53ee0, 0x89e311081be3fe54, 0x6cf5a3a59e96df41};
  for (std::size_t i = 0; i < kRecorded.size(); ++i) {
    Request request = sample(static_cast<Op>(i + 1));
    request.part = 3;
    EXPECT_EQ(hash_of(bytes_of(request)), kRecorded[i]) << i + 1;
  }
  Request change = sample(Op::Move);
  change.flags = kForwarded | kOnce;
  change.forwarded = {7, 8, kRootId, -9};
  change.once = {99, 3, 4};
  EXPECT_EQ(hash_of(bytes_of(change)), 0x64ea1617c638145a);
  EXPECT_EQ(hash_of(bytes_of(remote_sample(Op::Write))), 0x0dcafbaf7313e8b2);
}

TEST(Message, ReplyBytesAreThoseOfProtocolVersion) {
  std::string bytes;
  put(bytes, Reply{.error = 28, .body_bytes = 48, .data_bytes = 9, .tag = 5, .number = 6});
  put(bytes, Attributes{1, 2, 3, 4, 5, -6, -7});
  append_entry(7, 8, "one", bytes);
  put(bytes, Statistics{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13});
  put(bytes, ChannelOffer{1, 2, 3, 4, 5, 6});
  put(bytes, DataPlace{1, 2, 3, 4});
  EXPECT_EQ(hash_of(bytes), 0xa4288aa058883231);
}

}  // namespace
}  // namespace score::pario

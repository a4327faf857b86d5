// Tests the answers of fi_getinfo(3), and passes invalid addresses to every function that takes
// one.
#include "pmlib/fi/hints.hpp"
#include "tests/support/pmlib/provider_fixture.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace score::pm::fi {
namespace {

using InfoPtr = std::unique_ptr<fi_info, decltype(&fi_freeinfo)>;

struct InfoQuery {
  const char* node = nullptr;
  const char* service = nullptr;
  std::uint64_t flags = 0;
  std::uint32_t version = FI_VERSION(1, 17);
};

class ProviderInfo : public testing::Test {
 protected:
  using Change = std::function<void(fi_info&)>;

  // Returns the answer to hints with one change; `status` is the result of fi_getinfo().
  InfoPtr ask(const Change& change = {}, const InfoQuery& query = {}) {
    const InfoPtr hints(fi_dupinfo(nullptr), fi_freeinfo);
    hints->fabric_attr->prov_name = strdup("pm");
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    if (change) change(*hints);
    fi_info* found = nullptr;
    status = fi_getinfo(query.version, query.node, query.service, query.flags, hints.get(), &found);
    return {status == 0 ? found : nullptr, fi_freeinfo};
  }

  Name source_of(const fi_info& info) {
    Name name;
    EXPECT_EQ(info.src_addrlen, sizeof name);
    EXPECT_TRUE(read_name(info.src_addr, name));
    return name;
  }

  int status = 0;
};

std::string ip_text(std::uint32_t ip) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &ip, text.data(), text.size());
  return text.data();
}

// --- addresses ---------------------------------------------------------------------------------

TEST_F(ProviderInfo, ReturnsOwnAddressByDefault) {
  const auto info = ask();
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->dest_addr, nullptr);
  const Name own = source_of(*info);
  EXPECT_EQ(own.kind, NameKind::Udp);
  EXPECT_EQ(ip_text(own.ip), "127.0.0.1");  // FI_PM_IP of this test
  EXPECT_FALSE(own.is_whole()) << "no socket yet";
}

TEST_F(ProviderInfo, ReturnsSourceGivenByNodeAndService) {
  for (const char* node : {"127.0.0.2", "localhost"}) {
    const auto info = ask({}, {node, "41234", FI_SOURCE});
    ASSERT_NE(info, nullptr) << node;
    const Name own = source_of(*info);
    EXPECT_EQ(ip_text(own.ip), node == std::string("localhost") ? "127.0.0.1" : node);
    EXPECT_EQ(ntohs(own.udp_port), 41234);
  }
  const auto by_service = ask({}, {nullptr, "41234", FI_SOURCE});
  ASSERT_NE(by_service, nullptr);
  EXPECT_EQ(ntohs(source_of(*by_service).udp_port), 41234);
  EXPECT_EQ(ip_text(source_of(*by_service).ip), "127.0.0.1");
}

TEST_F(ProviderInfo, DomainUsesSourceAddressIfFree) {
  const auto info = ask({}, {"127.0.0.1", nullptr, FI_SOURCE});
  ASSERT_NE(info, nullptr);
  Side first;
  Name wanted = source_of(*info);
  wanted.udp_port = first.name().udp_port;  // taken
  std::memcpy(info->src_addr, &wanted, sizeof wanted);
  fid_domain* domain = nullptr;
  ASSERT_EQ(fi_domain(first.fabric, info.get(), &domain, nullptr), 0);
  EXPECT_EQ(fi_close(&domain->fid), 0);
}

TEST_F(ProviderInfo, RefusesUnresolvableNode) {
  const auto refuses = [this](const InfoQuery& query) {
    ask({}, query);
    EXPECT_EQ(status, -FI_ENODATA) << (query.node != nullptr ? query.node : "none");
  };
  for (const char* node :
       {"no.such.host.invalid", "256.1.1.1", "", "fi_pm://", "fi_pm://rank:x/0"}) {
    refuses({node, nullptr, FI_SOURCE});
    refuses({node, "4000", 0});
    refuses({node});
  }
  // These name a different host's socket, whose key is not known.
  refuses({"127.0.0.1", "4000", 0});
  refuses({"127.0.0.1"});
  refuses({nullptr, "4000", 0});
  refuses({"fi_sockaddr_in://127.0.0.1:4000"});
  refuses({"localhost", nullptr, FI_SOURCE | FI_NUMERICHOST});
}

TEST_F(ProviderInfo, RefusesHintsWithInvalidAddresses) {
  std::array<std::uint8_t, 64> random{};
  std::mt19937 bits(7);
  const auto refuses = [&](std::size_t length) {
    for (const bool is_source : {true, false}) {
      ask([&](fi_info& hints) {
        auto& address = is_source ? hints.src_addr : hints.dest_addr;
        (is_source ? hints.src_addrlen : hints.dest_addrlen) = length;
        address = std::malloc(random.size());
        std::memcpy(address, random.data(), random.size());
      });
      EXPECT_EQ(status, -FI_ENODATA) << length;  // libfabric's error if a provider refuses
    }
  };
  for (int round = 0; round < 50; ++round) {
    for (auto& byte : random) byte = static_cast<std::uint8_t>(bits());
    refuses(sizeof(Name));
  }
  const Name good;
  std::memcpy(random.data(), &good, sizeof good);
  for (const std::size_t length : {0, 1, 16, 31, 33}) refuses(length);
}

// --- limits ------------------------------------------------------------------------------------

// FI_ORDER_STRICT and FI_ORDER_DATA, names that libfabric 2 deprecates.
constexpr std::uint64_t kOrderStrict = 0x1FF;
constexpr std::uint64_t kOrderData = 1 << 16;

TEST_F(ProviderInfo, RefusesHintsThatCannotBeMet) {
  const std::vector<std::pair<const char*, Change>> cases = {
      {"strict completion order", [](fi_info& h) { h.tx_attr->comp_order = kOrderStrict; }},
      {"order of received data", [](fi_info& h) { h.rx_attr->comp_order = kOrderData; }},
      {"receives", [](fi_info& h) { h.rx_attr->size = 100'000; }},
      {"sends", [](fi_info& h) { h.tx_attr->size = 100'000; }},
      {"buffered receive", [](fi_info& h) { h.rx_attr->total_buffered_recv = 1 << 20; }},
      {"injected bytes", [](fi_info& h) { h.tx_attr->inject_size = 32'769; }},
      {"reads after writes", [](fi_info& h) { h.ep_attr->max_order_raw_size = 1 << 20; }},
      {"writes after reads", [](fi_info& h) { h.ep_attr->max_order_war_size = 1 << 20; }},
      {"writes after writes", [](fi_info& h) { h.ep_attr->max_order_waw_size = 1 << 20; }},
      {"sends after reads", [](fi_info& h) { h.tx_attr->msg_order = FI_ORDER_SAR; }},
      {"counters", [](fi_info& h) { h.domain_attr->cntr_cnt = 5000; }},
      {"queues", [](fi_info& h) { h.domain_attr->cq_cnt = 5000; }},
      {"endpoints", [](fi_info& h) { h.domain_attr->ep_cnt = 5000; }},
      {"shared contexts", [](fi_info& h) { h.domain_attr->max_ep_srx_ctx = 1; }},
      {"pieces of memory", [](fi_info& h) { h.domain_attr->mr_iov_limit = kMaxMrIov + 1; }},
      {"regions", [](fi_info& h) { h.domain_attr->mr_cnt = (1 << 20) + 1; }},
      {"remote pieces", [](fi_info& h) { h.tx_attr->rma_iov_limit = kMaxRemoteIov + 1; }},
      {"local pieces", [](fi_info& h) { h.tx_attr->iov_limit = kMaxIov + 1; }},
      {"error data", [](fi_info& h) { h.domain_attr->max_err_data = 4096; }},
      {"a connection", [](fi_info& h) { h.ep_attr->type = FI_EP_MSG; }},
      {"collectives", [](fi_info& h) { h.caps |= FI_COLLECTIVE; }},
  };
  for (const auto& [what, change] : cases) {
    const auto info = ask(change);
    EXPECT_EQ(status, -FI_ENODATA) << what;
  }
}

TEST_F(ProviderInfo, AcceptsHintsWithItsOwnLimits) {
  const auto info = ask();
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->tx_attr->comp_order, std::uint64_t{0});
  EXPECT_NE(info->caps & FI_RMA_EVENT, 0u);
  EXPECT_NE(info->rx_attr->caps & FI_RMA_EVENT, 0u);
  EXPECT_GT(info->ep_attr->max_order_waw_size, 0u) << "atomics are ordered";
  EXPECT_EQ(info->caps & (FI_FENCE | FI_SOURCE_ERR), 0u) << "not asked for";
  // The provider must accept the limits that it states.
  const InfoPtr again(fi_dupinfo(info.get()), fi_freeinfo);
  fi_info* found = nullptr;
  ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, again.get(), &found), 0);
  fi_freeinfo(found);
}

TEST_F(ProviderInfo, OrdersWritesOnlyOnRequest) {
  const auto plain = ask();
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(plain->tx_attr->msg_order & (FI_ORDER_SAW | FI_ORDER_WAW), 0u);
  const auto ordered = ask([](fi_info& hints) {
    hints.tx_attr->msg_order = hints.rx_attr->msg_order = FI_ORDER_SAW | FI_ORDER_WAW;
    hints.ep_attr->max_order_waw_size = 1 << 20;
  });
  ASSERT_NE(ordered, nullptr);
  EXPECT_EQ(ordered->tx_attr->msg_order & (FI_ORDER_SAW | FI_ORDER_WAW),
            std::uint64_t{FI_ORDER_SAW | FI_ORDER_WAW});
  EXPECT_GE(ordered->ep_attr->max_order_waw_size, std::size_t{1} << 20);
}

TEST_F(ProviderInfo, RequiresOnlyNeededMemoryModes) {
  const auto mode_for = [this](int offered, std::uint32_t version) {
    const auto info =
        ask([&](fi_info& h) { h.domain_attr->mr_mode = offered; }, {.version = version});
    return info ? info->domain_attr->mr_mode : -1;
  };
  constexpr int kAll = FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
                       FI_MR_PROV_KEY | FI_MR_ENDPOINT | FI_MR_RMA_EVENT;
  EXPECT_EQ(mode_for(kAll, FI_VERSION(1, 17)), 0);
  EXPECT_EQ(mode_for(0, FI_VERSION(1, 17)), 0);
  EXPECT_EQ(mode_for(kMrBasic, FI_VERSION(1, 17)), kMrBasic);
  EXPECT_EQ(mode_for(kMrScalable, FI_VERSION(1, 17)), kMrScalable);
  EXPECT_EQ(mode_for(kMrUnspec, FI_VERSION(1, 0)), kMrScalable);
  EXPECT_EQ(mode_for(kMrBasic, FI_VERSION(1, 0)), kMrBasic);
  EXPECT_EQ(mode_for(kMrScalable, FI_VERSION(1, 4)), kMrScalable);
}

// MPICH injects as much as the provider accepts, and its receivers expect no more than its
// threshold.
TEST_F(ProviderInfo, InjectLimitFollowsMpiEagerThreshold) {
  struct Case {
    const char* value;
    std::size_t bytes;
  };

  for (const auto& [value, bytes] :
       {Case{"4096", 4096}, Case{"1", 1}, Case{"0", 0}, Case{"-1", kInjectBytes},
        Case{"1000000", kInjectBytes}, Case{"much", kInjectBytes}}) {
    setenv("MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD", value, 1);
    const auto info = ask();
    ASSERT_NE(info, nullptr) << value;
    EXPECT_EQ(info->tx_attr->inject_size, bytes) << value;
  }
  setenv("MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD", "100", 1);
  Side side;
  unsetenv("MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD");
  const fi_addr_t self = side.know(side.name());
  const std::array<char, 101> bytes{};
  EXPECT_EQ(fi_tinject(side.ep, bytes.data(), 100, self, 1), 0);
  EXPECT_EQ(fi_tinject(side.ep, bytes.data(), 101, self, 1), -FI_EINVAL);
}

// --- functions that take addresses -------------------------------------------------------------

class ProviderAddresses : public Provider {
 protected:
  // Returns bytes that are not a name: random, with a wrong magic, an unknown kind or reserved
  // bits, and names that no peer has.
  std::vector<Name> bad_names() const {
    std::vector<Name> bad(40);
    std::mt19937 bits(3);
    for (Name& name : bad) {
      std::array<std::uint32_t, sizeof(Name) / 4> words{};
      for (auto& word : words) word = static_cast<std::uint32_t>(bits());
      std::memcpy(static_cast<void*>(&name), words.data(), sizeof name);
    }
    const Name good = a->name();
    for (int fault = 0; fault < 7; ++fault) {
      Name name = good;
      if (fault == 0) name.magic ^= 1;
      if (fault == 1) name.kind = static_cast<NameKind>(9);
      if (fault == 2) name.reserved = 1;
      if (fault == 3) name.kind = NameKind::Job;
      if (fault == 4) name.key = 0;
      if (fault == 5) name.udp_port = 0;
      if (fault == 6) name.payload = 9000;
      bad.push_back(name);
    }
    return bad;
  }
};

TEST_F(ProviderAddresses, InsertRefusesInvalidNames) {
  fi_addr_t number = 0;
  EXPECT_EQ(fi_av_insert(b->av, nullptr, 1, &number, 0, nullptr), -FI_EINVAL);
  const Name good = a->name();
  EXPECT_EQ(fi_av_insert(b->av, &good, 1, &number, FI_SYNC_ERR, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsvc(b->av, nullptr, "1", &number, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsvc(b->av, "127.0.0.1", "1", &number, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_insertsvc(b->av, "fi_pm://1.2.3.4:5/0", nullptr, &number, 0, nullptr),
            -FI_EINVAL);
  const std::vector<Name> bad = bad_names();
  for (const Name& name : bad) {
    EXPECT_EQ(fi_av_insert(b->av, &name, 1, &number, 0, nullptr), -FI_EINVAL);
    EXPECT_EQ(number, FI_ADDR_NOTAVAIL);
  }
  // Valid names among invalid ones are inserted, and the errors of the others are reported.
  const std::array<Name, 3> mixed = {bad[0], good, bad[1]};
  std::array<fi_addr_t, 3> numbers{};
  std::array<int, 3> faults{};
  EXPECT_EQ(fi_av_insert(b->av, mixed.data(), 3, numbers.data(), FI_SYNC_ERR, faults.data()), 1);
  EXPECT_EQ(faults, (std::array<int, 3>{FI_EINVAL, 0, FI_EINVAL}));
  EXPECT_EQ(numbers[0], FI_ADDR_NOTAVAIL);
  EXPECT_NE(numbers[1], FI_ADDR_NOTAVAIL);
}

TEST_F(ProviderAddresses, OtherAddressVectorFunctionsRefuseNull) {
  Name name;
  std::size_t length = sizeof name;
  std::array<char, 8> text{};
  EXPECT_EQ(fi_av_lookup(b->av, b_to_a, nullptr, &length), -FI_EINVAL);
  EXPECT_EQ(fi_av_lookup(b->av, b_to_a, &name, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_av_lookup(b->av, 999, &name, &length), -FI_EINVAL);
  EXPECT_EQ(fi_av_remove(b->av, nullptr, 1, 0), -FI_EINVAL);
  fi_addr_t unknown = 12345;
  EXPECT_EQ(fi_av_remove(b->av, &unknown, 1, 0), -FI_EINVAL);
  length = text.size();
  EXPECT_STREQ(fi_av_straddr(b->av, nullptr, text.data(), &length), "no name");
  EXPECT_EQ(fi_av_straddr(b->av, &name, text.data(), nullptr), nullptr);
  // A short buffer gets the beginning, and the length that is needed.
  text = {};
  length = 4;
  EXPECT_EQ(fi_av_lookup(b->av, b_to_a, text.data(), &length), 0);
  EXPECT_EQ(length, sizeof name);
  EXPECT_EQ(std::memcmp(text.data(), "PMN1\0\0\0\0", 8), 0);
}

TEST_F(ProviderAddresses, GetnameReportsNeededLength) {
  Name name;
  std::size_t length = sizeof name;
  EXPECT_EQ(fi_getname(&a->ep->fid, nullptr, &length), -FI_EINVAL);
  EXPECT_EQ(fi_getname(&a->ep->fid, &name, nullptr), -FI_EINVAL);
  length = 0;
  EXPECT_EQ(fi_getname(&a->ep->fid, nullptr, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof name);
  length = 7;
  EXPECT_EQ(fi_getname(&a->ep->fid, &name, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof name);
}

TEST_F(ProviderAddresses, DomainsAndEndpointsRefuseInvalidAddresses) {
  const InfoPtr info(fi_dupinfo(a->info), fi_freeinfo);
  fid_domain* domain = nullptr;
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_endpoint(a->domain, nullptr, &ep, nullptr), -FI_EINVAL);
  for (const Name& name : bad_names()) {
    Name parsed;
    if (read_name(&name, parsed)) continue;
    std::memcpy(info->src_addr, &name, sizeof name);
    EXPECT_EQ(fi_domain(a->fabric, info.get(), &domain, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_endpoint(a->domain, info.get(), &ep, nullptr), -FI_EINVAL);
  }
  std::memcpy(info->src_addr, a->info->src_addr, sizeof(Name));
  for (const std::size_t length : {0, 5, 31, 33}) {
    info->src_addrlen = length;
    EXPECT_EQ(fi_domain(a->fabric, info.get(), &domain, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_endpoint(a->domain, info.get(), &ep, nullptr), -FI_EINVAL);
  }
}

TEST_F(ProviderAddresses, OperationsRefuseUnknownPeerNumbers) {
  std::uint64_t bytes = 0;
  for (const fi_addr_t absent : {fi_addr_t{77}, fi_addr_t{FI_ADDR_UNSPEC}, fi_addr_t{1} << 40}) {
    EXPECT_EQ(fi_send(a->ep, &bytes, 8, nullptr, absent, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_tsend(a->ep, &bytes, 8, nullptr, absent, 1, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_inject(a->ep, &bytes, 8, absent), -FI_EINVAL);
    EXPECT_EQ(fi_tinject(a->ep, &bytes, 8, absent, 1), -FI_EINVAL);
    EXPECT_EQ(fi_write(a->ep, &bytes, 8, nullptr, absent, 0, 0, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_read(a->ep, &bytes, 8, nullptr, absent, 0, 0, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_atomic(a->ep, &bytes, 1, nullptr, absent, 0, 0, FI_INT64, FI_SUM, nullptr),
              -FI_EINVAL);
    if (absent == FI_ADDR_UNSPEC) continue;  // a receive accepts it: any source
    EXPECT_EQ(fi_recv(a->ep, &bytes, 8, nullptr, absent, nullptr), -FI_EINVAL);
    EXPECT_EQ(fi_trecv(a->ep, &bytes, 8, nullptr, absent, 1, 0, nullptr), -FI_EINVAL);
  }
  EXPECT_EQ(fi_sendv(a->ep, nullptr, nullptr, 2, a_to_b, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_recvv(a->ep, nullptr, nullptr, 2, a_to_b, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_writev(a->ep, nullptr, nullptr, 2, a_to_b, 0, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_readv(a->ep, nullptr, nullptr, 2, a_to_b, 0, 0, nullptr), -FI_EINVAL);
  fid_mr* region = nullptr;
  EXPECT_EQ(fi_mr_regattr(a->domain, nullptr, 0, &region), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(a->ep, nullptr, 0), -FI_EINVAL);
}

// --- addresses as text -------------------------------------------------------------------------

TEST_F(ProviderInfo, AddressesMayBeStrings) {
  SideOptions options;
  options.address_format = FI_ADDR_STR;
  Side a(options), b(options);
  const auto name_of = [](const Side& side) {
    std::array<char, 200> text{};
    std::size_t length = text.size();
    EXPECT_EQ(fi_getname(&side.ep->fid, text.data(), &length), 0);
    EXPECT_EQ(length, std::strlen(text.data()) + 1);
    return std::string(text.data());
  };
  const std::string of_a = name_of(a), of_b = name_of(b);
  EXPECT_TRUE(of_a.starts_with("fi_pm://127.0.0.1:")) << of_a;
  std::array<const char*, 3> names = {of_b.c_str(), "fi_pm://nonsense", nullptr};
  std::array<fi_addr_t, 3> numbers{};
  ASSERT_EQ(fi_av_insert(a.av, names.data(), 3, numbers.data(), 0, nullptr), 1);
  EXPECT_EQ(numbers[1], FI_ADDR_NOTAVAIL);
  fi_addr_t from = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insertsvc(b.av, of_a.c_str(), nullptr, &from, 0, nullptr), 1);
  int got = 0;
  const int value = 9;
  ASSERT_EQ(fi_trecv(b.ep, &got, 4, nullptr, from, 1, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(a.ep, &value, 4, nullptr, numbers[0], 1, nullptr), 0);
  const auto end = Link::now_us() + kTimeoutUs;
  fi_cq_tagged_entry entry{};
  while (got == 0 && Link::now_us() < end) {
    a.poll(entry);
    b.poll(entry);
  }
  EXPECT_EQ(got, 9);
  // fi_getinfo() accepts an address as node.
  const auto info = ask([](fi_info& hints) { hints.addr_format = FI_ADDR_STR; }, {of_b.c_str()});
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(static_cast<const char*>(info->dest_addr), of_b);
}

TEST(Name, MalformedAddressStringsAreRefused) {
  Name name;
  const std::string good = "fi_pm://10.0.0.1:4000/3?key=1f&payload=1424";
  ASSERT_TRUE(parse_name(good, name));
  EXPECT_EQ(to_address(name), good);
  ASSERT_TRUE(parse_name("fi_pm://rank:3/0?key=1f", name));
  EXPECT_EQ(to_address(name), "fi_pm://rank:3/0?key=1f");
  for (std::size_t n = 0; n < good.size() - 3; ++n) {
    EXPECT_FALSE(parse_name(good.substr(0, n), name)) << n;
  }
  std::mt19937 bits(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    text[bits() % text.size()] = static_cast<char>(bits());
    if (parse_name(text, name)) {
      EXPECT_EQ(to_address(name).substr(0, 8), "fi_pm://");
    }
  }
}

}  // namespace
}  // namespace score::pm::fi

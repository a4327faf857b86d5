// Tests the provider's conformance: two endpoints in one process, through libfabric itself.
#include "tests/support/pmlib/provider_fixture.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <numeric>
#include <string>
#include <sys/resource.h>
#include <thread>

namespace score::pm::fi {
namespace {

constexpr auto kTestTimeout = std::chrono::seconds(120);

TEST_F(Provider, MessagesOfEveryLengthArrive) {
  for (const bool is_expected : {true, false}) {
    for (const std::size_t length :
         {0,     1,      8,      1300,   1384,   1400,   1408,    1424,    5000,    16384,    32768,
          32769, 61'440, 61'441, 67'545, 67'584, 67'585, 100'000, 524'288, 524'289, 3'000'000}) {
      const auto sent = pattern(length, static_cast<unsigned>(length));
      std::vector<std::uint8_t> got(length + 1, 0xee);
      done_b.clear();
      const auto post = [&] {
        return fi_trecv(b->ep, got.data(), got.size(), nullptr, b_to_a, length, 0, &got);
      };
      if (is_expected) {
        ASSERT_EQ(post(), 0);
      }
      ASSERT_TRUE(send_tagged(sent.data(), length, length));
      if (!is_expected) {
        run_a_little();
        ASSERT_EQ(post(), 0);
      }
      ASSERT_TRUE(run_until([&] { return !done_b.empty(); })) << length;
      EXPECT_EQ(done_b[0].len, length);
      EXPECT_EQ(done_b[0].tag, length);
      EXPECT_EQ(done_b[0].op_context, static_cast<void*>(&got));
      EXPECT_TRUE(std::equal(sent.begin(), sent.end(), got.begin())) << length;
      EXPECT_EQ(got[length], 0xee);
      ASSERT_TRUE(run_until([&] { return !done_a.empty(); }));
      done_a.clear();
    }
  }
  EXPECT_TRUE(errors.empty());
}

TEST_F(Provider, KeepsOrderWithinTag) {
  constexpr std::uint32_t kCount = 2000;
  std::vector<std::uint32_t> got(kCount), numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const auto post = [&] { return fi_trecv(b->ep, &got[i], 4, nullptr, b_to_a, 1, 0, &got[i]); };
    const bool is_expected = i % 3 == 0;
    EXPECT_EQ(is_expected ? post() : 0, 0);
    ASSERT_TRUE(send_tagged(&numbers[i], 4, 1));
    EXPECT_EQ(is_expected ? 0 : post(), 0);
  }
  ASSERT_TRUE(run_until([&] { return done_b.size() == kCount; }));
  EXPECT_EQ(got, numbers);
}

// Returns how often this thread has slept.
long sleeps_so_far() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

// Reads an empty queue until the thread has slept in it; returns false if it never did.
bool polls_until_it_rests(fid_cq* cq) {
  const auto end = Link::now_us() + kTimeoutUs;
  const long before = sleeps_so_far();
  fi_cq_tagged_entry entry{};
  while (sleeps_so_far() < before + 3) {
    for (int i = 0; i < 1000; ++i) {
      if (fi_cq_read(cq, &entry, 1) != -FI_EAGAIN) return false;
    }
    if (Link::now_us() > end) return false;
  }
  return true;
}

TEST_F(Provider, IdlePollerRestsAndStillReceives) {
  int got = 0;
  const int sent = 7;
  ASSERT_EQ(fi_trecv(b->ep, &got, sizeof got, nullptr, b_to_a, 1, 0, &got), 0);
  ASSERT_TRUE(polls_until_it_rests(b->cq));
  ASSERT_TRUE(send_only(&sent, sizeof sent, 1));
  ASSERT_TRUE(run_until([&] { return !done_b.empty(); }));
  EXPECT_EQ(got, 7);
}

TEST_F(Provider, SendsWhileOtherThreadRests) {
  std::atomic<bool> rests{false}, stops{false};
  std::thread poller([&] {
    rests = polls_until_it_rests(a->cq);
    fi_cq_tagged_entry entry{};
    while (!stops) fi_cq_read(a->cq, &entry, 1);
  });
  while (!rests) std::this_thread::yield();
  const int sent = 7;
  for (int i = 0; i < 100; ++i) {
    int got = 0;
    ASSERT_EQ(fi_trecv(b->ep, &got, sizeof got, nullptr, b_to_a, 1, 0, &got), 0);
    ASSERT_EQ(fi_tinject(a->ep, &sent, sizeof sent, a_to_b, 1), 0);
    const auto end = Link::now_us() + kTimeoutUs;
    for (done_b.clear(); done_b.empty() && Link::now_us() < end;) take(*b, done_b);
    ASSERT_EQ(got, 7);
  }
  stops = true;
  poller.join();
}

TEST_F(Provider, TakesMoreUnexpectedMessagesThanPmHasBuffers) {
  constexpr std::size_t kCount = 3000;
  std::vector<std::vector<std::uint8_t>> sent;
  for (std::size_t i = 0; i < kCount; ++i) {
    sent.push_back(pattern(i % 4000, static_cast<unsigned>(i)));
    ASSERT_TRUE(send_tagged(sent[i].data(), sent[i].size(), i));
  }
  ASSERT_TRUE(run_until([&] { return done_a.size() == kCount; }));
  std::vector<std::uint8_t> got(4000);
  for (std::size_t i = kCount; i-- > 0;) {
    ASSERT_EQ(fi_trecv(b->ep, got.data(), got.size(), nullptr, b_to_a, i, 0, nullptr), 0);
    ASSERT_TRUE(run_until([&] { return !done_b.empty(); }));
    ASSERT_EQ(done_b[0].len, sent[i].size());
    ASSERT_TRUE(std::equal(sent[i].begin(), sent[i].end(), got.begin()));
    done_b.clear();
  }
}

TEST_F(Provider, LargeSendsCompleteInAnyReceiveOrder) {
  constexpr std::size_t kCount = 200, kLength = 40'000;  // more than PM has regions
  std::vector<std::vector<std::uint8_t>> sent, got(kCount, std::vector<std::uint8_t>(kLength));
  for (std::size_t i = 0; i < kCount; ++i) {
    sent.push_back(pattern(kLength, static_cast<unsigned>(i)));
    ASSERT_TRUE(send_tagged(sent[i].data(), kLength, i));
  }
  for (std::size_t i = kCount; i-- > 0;) {
    ASSERT_EQ(fi_trecv(b->ep, got[i].data(), kLength, nullptr, b_to_a, i, 0, nullptr), 0);
  }
  ASSERT_TRUE(run_until([&] { return done_a.size() == kCount && done_b.size() == kCount; }));
  EXPECT_EQ(got, sent);
}

TEST_F(Provider, ReportsTruncation) {
  for (const std::size_t length : {100, 3000, 50'000, 200'000, 600'000}) {
    const auto sent = pattern(length, 1);
    std::array<std::uint8_t, 64> got{};
    errors.clear();
    ASSERT_EQ(fi_trecv(b->ep, got.data(), 60, nullptr, FI_ADDR_UNSPEC, 5, 0, &got), 0);
    ASSERT_TRUE(send_tagged(sent.data(), length, 5));
    ASSERT_TRUE(run_until([&] { return !errors.empty(); }));
    EXPECT_EQ(errors[0].err, FI_ETRUNC);
    EXPECT_EQ(errors[0].op_context, &got);
    EXPECT_EQ(errors[0].len, 60u);
    EXPECT_EQ(errors[0].olen, length - 60);
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + 60, sent.begin()));
    EXPECT_EQ(got[60], 0);
    ASSERT_TRUE(run_until([&] { return !done_a.empty(); }));
    done_a.clear();
  }
}

TEST_F(Provider, CancelsUnmatchedReceives) {
  int first = 0, second = 0;
  ASSERT_EQ(fi_trecv(b->ep, &first, 4, nullptr, FI_ADDR_UNSPEC, 1, 0, &first), 0);
  ASSERT_EQ(fi_trecv(b->ep, &second, 4, nullptr, FI_ADDR_UNSPEC, 1, 0, &second), 0);
  EXPECT_EQ(fi_cancel(&b->ep->fid, &first), 0);
  EXPECT_EQ(fi_cancel(&b->ep->fid, &errors), -FI_ENOENT);
  const int value = 42;
  ASSERT_TRUE(send_tagged(&value, 4, 1));
  ASSERT_TRUE(run_until([&] { return done_b.size() == 1 && errors.size() == 1; }));
  EXPECT_EQ(errors[0].err, FI_ECANCELED);
  EXPECT_EQ(errors[0].op_context, &first);
  EXPECT_EQ(second, 42);
}

TEST_F(Provider, CancelsSendsThatAwaitTheirMatch) {
  int value = 7, got = 0;
  ASSERT_EQ(fi_trecv(b->ep, &got, sizeof got, nullptr, FI_ADDR_UNSPEC, 4, 0, &got), 0);
  ASSERT_TRUE(send_tagged(&value, sizeof value, 4));
  ASSERT_TRUE(run_until([&] { return done_b.size() == 1; }));
  done_b.clear();
  got = 0;
  iovec piece{&value, sizeof value};
  fi_msg_tagged message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = a_to_b;
  message.tag = 5;
  message.context = &value;
  ASSERT_EQ(fi_tsendmsg(a->ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
  EXPECT_EQ(fi_cancel(&a->ep->fid, &got), -FI_ENOENT);
  EXPECT_EQ(fi_cancel(&a->ep->fid, &value), 0);
  EXPECT_EQ(fi_cancel(&a->ep->fid, &value), -FI_ENOENT);
  ASSERT_TRUE(run_until([&] { return errors.size() == 1; }));
  EXPECT_EQ(errors[0].err, FI_ECANCELED);
  EXPECT_EQ(errors[0].op_context, &value);
  // The message is there, and its late answer ends nothing.
  ASSERT_EQ(fi_trecv(b->ep, &got, sizeof got, nullptr, FI_ADDR_UNSPEC, 5, 0, &got), 0);
  ASSERT_TRUE(run_until([&] { return done_b.size() == 1; }));
  EXPECT_EQ(got, 7);
  ASSERT_TRUE(send_tagged(&value, sizeof value, 6));
  EXPECT_EQ(errors.size(), 1U);
}

TEST_F(Provider, DirectedReceivesTakeOnlyTheirSource) {
  const fi_addr_t self = b->know(b->name());
  int from_self = 0, from_a = 0;
  ASSERT_EQ(fi_trecv(b->ep, &from_self, 4, nullptr, self, 1, 0, nullptr), 0);
  ASSERT_EQ(fi_trecv(b->ep, &from_a, 4, nullptr, b_to_a, 1, 0, nullptr), 0);
  const int one = 1, two = 2;
  ASSERT_TRUE(send_tagged(&one, 4, 1));
  ASSERT_EQ(fi_tsend(b->ep, &two, 4, nullptr, self, 1, nullptr), 0);
  ASSERT_TRUE(run_until([&] { return done_b.size() == 3; }));
  EXPECT_EQ(from_a, 1);
  EXPECT_EQ(from_self, 2);
}

TEST_F(Provider, MultiReceiveBufferIsReleasedWhenFull) {
  std::vector<std::uint8_t> buffer(10'000);
  const std::size_t least = 1000;
  ASSERT_EQ(fi_setopt(&b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
            0);
  const iovec iov{buffer.data(), buffer.size()};
  fi_msg m{};
  m.msg_iov = &iov;
  m.iov_count = 1;
  m.addr = FI_ADDR_UNSPEC;
  m.context = &buffer;
  ASSERT_EQ(fi_recvmsg(b->ep, &m, FI_MULTI_RECV | FI_COMPLETION), 0);
  const auto sent = pattern(3001, 3);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(fi_send(a->ep, sent.data(), sent.size(), nullptr, a_to_b, nullptr), 0);
  }
  ASSERT_TRUE(run_until([&] { return done_b.size() == 3; }));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(done_b[i].buf, buffer.data() + i * 3001);
    EXPECT_EQ((done_b[i].flags & FI_MULTI_RECV) != 0, i == 2);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), buffer.begin() + static_cast<int>(i) * 3001));
  }
  std::vector<std::uint8_t> last(4000);  // the fourth waits for the next buffer
  ASSERT_EQ(fi_recv(b->ep, last.data(), last.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_TRUE(run_until([&] { return done_b.size() == 4; }));
  EXPECT_EQ(done_b[3].len, 3001u);
}

TEST_F(Provider, PeeksClaimsAndDiscards) {
  const auto sent = pattern(30'000, 4);
  fi_msg_tagged m{};
  m.addr = b_to_a;
  m.tag = 9;
  m.context = &m;
  ASSERT_EQ(fi_trecvmsg(b->ep, &m, FI_PEEK), 0);
  ASSERT_TRUE(run_until([&] { return !errors.empty(); }));
  EXPECT_EQ(errors[0].err, FI_ENOMSG);
  ASSERT_TRUE(send_tagged(sent.data(), 1000, 9));
  ASSERT_TRUE(send_tagged(sent.data(), 30'000, 9));
  run_a_little();
  ASSERT_EQ(fi_trecvmsg(b->ep, &m, FI_PEEK | FI_CLAIM), 0);
  ASSERT_TRUE(run_until([&] { return done_b.size() == 1; }));
  EXPECT_EQ(done_b[0].len, 1000u);
  std::vector<std::uint8_t> got(1000);
  const iovec iov{got.data(), got.size()};
  m.msg_iov = &iov;
  m.iov_count = 1;
  ASSERT_EQ(fi_trecvmsg(b->ep, &m, FI_CLAIM), 0);
  ASSERT_TRUE(run_until([&] { return done_b.size() == 2; }));
  EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()));
  m.iov_count = 0;
  ASSERT_EQ(fi_trecvmsg(b->ep, &m, FI_PEEK | FI_DISCARD), 0);
  // The sender of the discarded message has completed its send.
  ASSERT_TRUE(run_until([&] { return done_a.size() == 2 && done_b.size() == 3; }));
  EXPECT_EQ(done_b[2].len, 30'000u);
}

TEST_F(Provider, WaitsOnDescriptorAndInSread) {
  int got = 0;
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(b->cq, &entry, 1, nullptr, 20), -FI_EAGAIN);
  ASSERT_EQ(fi_trecv(b->ep, &got, 4, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  const int value = 7;
  ASSERT_TRUE(send_tagged(&value, 4, 1));
  fid* const waiting = &b->cq->fid;
  int fd = -1;
  ASSERT_EQ(fi_control(waiting, FI_GETWAIT, &fd), 0);
  const auto end = std::chrono::steady_clock::now() + kTestTimeout;
  std::array<fid*, 1> fids = {waiting};
  while (got == 0 && std::chrono::steady_clock::now() < end) {
    fi_cq_read(a->cq, &entry, 1);
    if (fi_trywait(b->fabric, fids.data(), 1) == 0) {
      pollfd ready{fd, POLLIN, 0};
      ::poll(&ready, 1, 10);
    }
    fi_cq_read(b->cq, &entry, 1);
  }
  EXPECT_EQ(got, 7);
}

// The polling thread may receive the message that the other one sleeps for.
TEST_F(Provider, SleeperWakesDespiteConcurrentPoller) {
  for (std::uint64_t round = 1; round <= 300; ++round) {
    int got = 0;
    const int value = 7;
    ASSERT_EQ(fi_trecv(b->ep, &got, 4, nullptr, FI_ADDR_UNSPEC, round, 0, nullptr), 0);
    std::atomic<bool> waits = false, is_done = false;
    std::thread sleeper([&] {
      fi_cq_tagged_entry entry{};
      waits = true;
      while (fi_cq_sread(b->cq, &entry, 1, nullptr, -1) != 1 && !is_done) {
      }
      is_done = true;
    });
    while (!waits) std::this_thread::yield();
    if (round % 2 == 0) usleep(100);
    ASSERT_TRUE(send_only(&value, 4, round));
    const auto end = std::chrono::steady_clock::now() + kTestTimeout;
    while (!is_done && std::chrono::steady_clock::now() < end) {
      fi_cq_tagged_entry entry{};
      fi_cq_read(a->cq, &entry, 1);
      fi_cntr_read(b->counter);
    }
    EXPECT_TRUE(is_done) << "the completion was there, but the sleeper slept on";
    if (!is_done.exchange(true)) {
      fi_cq_signal(b->cq);
      sleeper.join();
      return;
    }
    sleeper.join();
  }
}

TEST_F(Provider, OneOfTwoEqualNamesMayBeRemoved) {
  fi_addr_t again = b->know(a->name());
  int got = 0;
  const int value = 7;
  ASSERT_EQ(fi_av_remove(b->av, &b_to_a, 1, 0), 0);
  ASSERT_EQ(fi_trecv(b->ep, &got, 4, nullptr, again, 1, 0, nullptr), 0);
  ASSERT_TRUE(send_tagged(&value, 4, 1));
  fi_cq_tagged_entry entry{};
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  const auto end = std::chrono::steady_clock::now() + kTestTimeout;
  while (fi_cq_readfrom(b->cq, &entry, 1, &source) != 1) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    fi_cq_read(a->cq, &entry, 1);
  }
  EXPECT_EQ(source, again);
}

TEST_F(Provider, RefusesToInjectBeyondItsLimit) {
  const std::vector<std::uint8_t> bytes(2'000'000);
  const iovec iov{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  fi_msg_tagged m{};
  m.msg_iov = &iov;
  m.iov_count = 1;
  m.addr = a_to_b;
  EXPECT_EQ(fi_tsendmsg(a->ep, &m, FI_INJECT), -FI_EINVAL);
  EXPECT_EQ(fi_tinject(a->ep, bytes.data(), bytes.size(), a_to_b, 1), -FI_EINVAL);
}

TEST_F(Provider, SelectiveCompletionReportsOnlyRequestedOperations) {
  make({FI_PROGRESS_MANUAL, FI_SELECTIVE_COMPLETION, FI_CQ_FORMAT_TAGGED});
  int got = 0;
  const int value = 3;
  ASSERT_EQ(fi_trecv(b->ep, &got, 4, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  ASSERT_TRUE(send_tagged(&value, 4, 1));
  ASSERT_TRUE(run_until([&] { return got == 3; }));
  run_a_little();
  EXPECT_TRUE(done_a.empty() && done_b.empty());
  EXPECT_EQ(fi_cntr_read(b->counter), 1u);
}

TEST_F(Provider, InjectedMessagesNeedNeitherBufferNorAnswer) {
  SideOptions options;
  options.send_flags = FI_DELIVERY_COMPLETE;
  make(options);
  relays.push_back(std::make_unique<Relay>(b->name(), 0));
  relays.push_back(std::make_unique<Relay>(a->name(), 0));
  const Relay& to_a = *relays[1];
  a_to_b = a->know(relays[0]->name());
  b_to_a = b->know(to_a.name());
  constexpr std::size_t kCount = 30;
  const std::size_t length = a->info->tx_attr->inject_size;
  std::vector<std::uint8_t> buffer = pattern(length, 0), got(length);
  const auto inject = [&](std::size_t bytes, std::uint64_t tag) {
    ssize_t error = -FI_EAGAIN;
    EXPECT_TRUE(run_until([&] {
      error = fi_tinject(a->ep, buffer.data(), bytes, a_to_b, tag);
      return error != -FI_EAGAIN;
    }));
    EXPECT_EQ(error, 0);
  };
  const auto take_one = [&](std::uint64_t tag) {
    done_b.clear();
    ASSERT_EQ(fi_trecv(b->ep, got.data(), length, nullptr, FI_ADDR_UNSPEC, tag, 0, nullptr), 0);
    ASSERT_TRUE(run_until([&] { return !done_b.empty(); }));
  };
  inject(length, 1);
  std::fill(buffer.begin(), buffer.end(), 0xee);
  take_one(1);
  EXPECT_EQ(got, pattern(length, 0));
  // All are sent before the other side looks, so it acknowledges them together.
  const std::size_t before = to_a.arrived();
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(fi_tinject(a->ep, buffer.data(), 8, a_to_b, 2), 0);
  }
  for (std::size_t i = 0; i < kCount; ++i) take_one(2);
  EXPECT_LT(to_a.arrived() - before, kCount / 2);
  EXPECT_TRUE(done_a.empty());
  EXPECT_TRUE(errors.empty());
}

TEST_F(Provider, LimitsBytesOfInjectedMessages) {
  const std::vector<std::uint8_t> bytes = pattern(a->info->tx_attr->inject_size, 3);
  std::size_t count = 0;
  ssize_t error = 0;
  // The other side is not called, so it receives nothing.
  while (count < 4096 && error == 0) {
    error = fi_tinject(a->ep, bytes.data(), bytes.size(), a_to_b, 1);
    count += error == 0 ? 1 : 0;
  }
  EXPECT_EQ(error, -FI_EAGAIN);
  EXPECT_LT(count * bytes.size(), std::size_t{10} << 20);
  std::vector<std::uint8_t> got(bytes.size());
  for (std::size_t i = 0; i < count; ++i) {
    done_b.clear();
    ASSERT_EQ(fi_trecv(b->ep, got.data(), got.size(), nullptr, b_to_a, 1, 0, nullptr), 0);
    ASSERT_TRUE(run_until([&] { return !done_b.empty(); })) << i;
    ASSERT_EQ(got, bytes);
  }
}

TEST_F(Provider, AutomaticProgressNeedsNoCalls) {
  make({FI_PROGRESS_AUTO, 0, FI_CQ_FORMAT_TAGGED});
  std::vector<std::uint8_t> sent = pattern(200'000, 5), got(200'000);
  ASSERT_EQ(fi_trecv(b->ep, got.data(), got.size(), nullptr, b_to_a, 1, 0, nullptr), 0);
  ASSERT_TRUE(send_tagged(sent.data(), sent.size(), 1));
  // Only the receiver's counter is read; the sender is not called any more.
  EXPECT_EQ(fi_cntr_wait(b->counter, 1, 20'000), 0);
  EXPECT_EQ(got, sent);
}

// The link's descriptors are shared by the domain's thread and the thread that rests in a read.
TEST_F(Provider, PollerRestsDuringAutomaticProgress) {
  make({FI_PROGRESS_AUTO, 0, FI_CQ_FORMAT_TAGGED});
  std::vector<std::uint8_t> sent = pattern(200'000, 5), got(200'000);
  ASSERT_EQ(fi_trecv(b->ep, got.data(), got.size(), nullptr, b_to_a, 1, 0, nullptr), 0);
  ASSERT_TRUE(polls_until_it_rests(b->cq));
  ASSERT_TRUE(send_tagged(sent.data(), sent.size(), 1));
  const auto end = Link::now_us() + kTimeoutUs;
  while (done_b.empty() && Link::now_us() < end) take(*b, done_b);
  EXPECT_EQ(got, sent);
}

TEST_F(Provider, DeliversUnderLoss) {
  meet_by_relays(20);
  const char* wanted = std::getenv("PM_FI_TEST_MESSAGES");  // 1000000 for the long form
  const auto count = static_cast<std::uint32_t>(wanted != nullptr ? std::atoi(wanted) : 5000);
  std::vector<std::uint32_t> numbers(500), got(1);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::fill(numbers.begin(), numbers.end(), i);
    const std::size_t length = 4 * (1 + i % numbers.size());
    got.assign(numbers.size(), 0);
    ASSERT_EQ(fi_trecv(b->ep, got.data(), got.size() * 4, nullptr, b_to_a, 1, 0, nullptr), 0);
    ASSERT_EQ(fi_tsend(a->ep, numbers.data(), length, nullptr, a_to_b, 1, nullptr), 0);
    // Only a few messages are in flight at a time.
    ASSERT_TRUE(run_until([&] { return !done_b.empty() && !done_a.empty(); })) << i;
    ASSERT_EQ(done_b[0].len, length);
    ASSERT_EQ(got[0], i);
    ASSERT_EQ(got[length / 4 - 1], i);
    done_a.clear();
    done_b.clear();
  }
}

// --- remote memory -----------------------------------------------------------------------------

class ProviderMemory : public Provider {
 protected:
  static constexpr std::uint64_t kKey = 77;

  ProviderMemory() : memory(300'000) {
    EXPECT_EQ(fi_mr_reg(b->domain, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE,
                        0, kKey, 0, &mr, nullptr),
              0);
  }

  ~ProviderMemory() override { EXPECT_EQ(fi_close(&mr->fid), 0); }

  bool wait_one() {
    const bool was_done = run_until([&] { return !done_a.empty() || !errors.empty(); });
    return was_done && !done_a.empty();
  }

  std::vector<std::uint8_t> memory;
  fid_mr* mr = nullptr;
};

TEST_F(ProviderMemory, WritesAndReadsOfEveryLength) {
  for (const std::size_t length : {1, 8, 1300, 1360, 1400, 1424, 20'000, 299'000}) {
    const auto sent = pattern(length, 6);
    std::vector<std::uint8_t> back(length);
    done_a.clear();
    ASSERT_EQ(fi_write(a->ep, sent.data(), length, nullptr, a_to_b, 100, kKey, nullptr), 0);
    ASSERT_TRUE(wait_one()) << length;
    EXPECT_EQ(done_a[0].flags & (FI_RMA | FI_WRITE), FI_RMA | FI_WRITE);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), memory.begin() + 100));
    done_a.clear();
    ASSERT_EQ(fi_read(a->ep, back.data(), length, nullptr, a_to_b, 100, kKey, nullptr), 0);
    ASSERT_TRUE(wait_one()) << length;
    EXPECT_EQ(back, sent);
  }
}

TEST_F(ProviderMemory, InjectedWritesReleaseTheirBuffer) {
  for (const std::size_t length :
       {std::size_t{1}, std::size_t{1360}, std::size_t{1361}, a->info->tx_attr->inject_size}) {
    const auto sent = pattern(length, 8);
    std::vector<std::uint8_t> buffer = sent;
    ASSERT_EQ(fi_inject_write(a->ep, buffer.data(), length, a_to_b, 50, kKey), 0);
    std::fill(buffer.begin(), buffer.end(), 0xee);
    ASSERT_TRUE(
        run_until([&] { return std::equal(sent.begin(), sent.end(), memory.begin() + 50); }));
  }
  EXPECT_TRUE(done_a.empty());
}

TEST_F(ProviderMemory, RefusesUnregisteredMemory) {
  std::vector<std::uint8_t> bytes(20'000);
  for (const std::size_t length : {8, 20'000}) {
    for (const bool is_write : {true, false}) {
      for (const auto& [offset, key] : {std::pair<std::uint64_t, std::uint64_t>{0, kKey + 1},
                                        {memory.size() - 7, kKey},
                                        {UINT64_MAX - 3, kKey}}) {
        errors.clear();
        done_a.clear();
        ASSERT_EQ(is_write
                      ? fi_write(a->ep, bytes.data(), length, nullptr, a_to_b, offset, key, this)
                      : fi_read(a->ep, bytes.data(), length, nullptr, a_to_b, offset, key, this),
                  0);
        EXPECT_FALSE(wait_one());
        ASSERT_EQ(errors.size(), 1u);
        EXPECT_EQ(errors[0].op_context, this);
      }
    }
  }
}

TEST_F(ProviderMemory, WriteEndsOnlyAfterPeerStoredIt) {
  const std::uint64_t value = 6;
  ASSERT_EQ(fi_write(a->ep, &value, 8, nullptr, a_to_b, 0, kKey, nullptr), 0);
  for (int i = 0; i < 2000; ++i) take(*a, done_a);  // the other side does not run
  EXPECT_TRUE(done_a.empty());
  ASSERT_TRUE(wait_one());
  EXPECT_EQ(std::memcmp(memory.data(), &value, 8), 0);
}

TEST_F(ProviderMemory, WriteWithDataNotifiesPeer) {
  const std::uint64_t value = 5;
  ASSERT_EQ(fi_writedata(a->ep, &value, 8, nullptr, 1234, a_to_b, 0, kKey, nullptr), 0);
  ASSERT_TRUE(run_until([&] { return !done_b.empty() && !done_a.empty(); }));
  EXPECT_EQ(done_b[0].data, 1234u);
  EXPECT_NE(done_b[0].flags & FI_REMOTE_CQ_DATA, 0u);
  EXPECT_EQ(fi_cntr_read(b->counter), 1u);
}

TEST_F(ProviderMemory, AtomicsFetchAddAndCompare) {
  std::int64_t value = 40, operand = 2, result = 0;
  std::memcpy(memory.data() + 8, &value, 8);
  ASSERT_EQ(fi_atomic(a->ep, &operand, 1, nullptr, a_to_b, 8, kKey, FI_INT64, FI_SUM, nullptr), 0);
  ASSERT_TRUE(wait_one());
  done_a.clear();
  ASSERT_EQ(fi_fetch_atomic(a->ep, &operand, 1, nullptr, &result, nullptr, a_to_b, 8, kKey,
                            FI_INT64, FI_PROD, nullptr),
            0);
  ASSERT_TRUE(wait_one());
  EXPECT_EQ(result, 42);
  done_a.clear();
  const std::int64_t compare = 84, swap = -1;
  ASSERT_EQ(fi_compare_atomic(a->ep, &swap, 1, nullptr, &compare, nullptr, &result, nullptr, a_to_b,
                              8, kKey, FI_INT64, FI_CSWAP, nullptr),
            0);
  ASSERT_TRUE(wait_one());
  EXPECT_EQ(result, 84);
  std::memcpy(&value, memory.data() + 8, 8);
  EXPECT_EQ(value, -1);
  EXPECT_EQ(fi_atomic(a->ep, &operand, 1, nullptr, a_to_b, 8, kKey, FI_DOUBLE, FI_BOR, nullptr),
            -FI_EOPNOTSUPP);
}

}  // namespace
}  // namespace score::pm::fi

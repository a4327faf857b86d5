// Tests order between operations of different kinds, fences, unknown senders, event queues, poll
// sets, and a job of an address file.
#include "tests/support/pmlib/provider_fixture.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace score::pm::fi {
namespace {

constexpr std::uint64_t kKey = 77;

class ProviderOrder : public Provider {
 protected:
  ProviderOrder() : memory(1'000'000) {}

  ~ProviderOrder() override {
    if (region != nullptr) {
      EXPECT_EQ(fi_close(&region->fid), 0);
    }
  }

  void start(const SideOptions& options) {
    make(options);
    ASSERT_EQ(fi_mr_reg(b->domain, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE,
                        0, kKey, 0, &region, nullptr),
              0);
  }

  bool is_written(std::size_t length, std::uint8_t value) const {
    return std::all_of(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(length),
                       [=](std::uint8_t byte) { return byte == value; });
  }

  // Waits for `count` completions of `a`.
  bool run_until_done(std::size_t count) {
    return run_until([&] { return done_a.size() >= count || !errors.empty(); }) && errors.empty();
  }

  std::vector<std::uint8_t> memory;
  fid_mr* region = nullptr;
};

TEST_F(ProviderOrder, SendDoesNotOvertakeInjectedWrite) {
  start({.order = FI_ORDER_SAS | FI_ORDER_SAW});
  std::vector<std::uint8_t> bytes(a->info->tx_attr->inject_size);
  for (std::uint8_t round = 1; round < 100; ++round) {
    int got = 0;
    std::fill(bytes.begin(), bytes.end(), round);
    done_b.clear();
    ASSERT_EQ(fi_trecv(b->ep, &got, 4, nullptr, b_to_a, 1, 0, nullptr), 0);
    ASSERT_EQ(fi_inject_write(a->ep, bytes.data(), bytes.size(), a_to_b, 0, kKey), 0);
    const int value = round;
    // The send goes by the fast path, as a message of its own, and in pieces.
    ASSERT_EQ(round % 2 == 0 ? fi_tinject(a->ep, &value, 4, a_to_b, 1)
                             : fi_tsend(a->ep, &value, 4, nullptr, a_to_b, 1, nullptr),
              0);
    ASSERT_TRUE(run_until([&] { return !done_b.empty(); }));
    ASSERT_TRUE(is_written(bytes.size(), round)) << int{round};
    EXPECT_EQ(got, round);
  }
  EXPECT_TRUE(errors.empty());
}

TEST_F(ProviderOrder, AccessesDoNotOvertakeLongWrite) {
  start({.order = FI_ORDER_WAW | FI_ORDER_RAW});
  std::vector<std::uint8_t> first(600'000), second(600'000), back(16);
  for (std::uint8_t round = 1; round < 60; round += 3) {
    std::fill(first.begin(), first.end(), round);
    std::fill(second.begin(), second.end(), round + 1);
    const std::uint8_t last = round + 2;
    done_a.clear();
    ASSERT_EQ(fi_write(a->ep, first.data(), first.size(), nullptr, a_to_b, 0, kKey, nullptr), 0);
    ASSERT_EQ(fi_write(a->ep, second.data(), second.size(), nullptr, a_to_b, 0, kKey, nullptr), 0);
    ASSERT_EQ(fi_write(a->ep, &last, 1, nullptr, a_to_b, 8, kKey, nullptr), 0);
    ASSERT_EQ(fi_read(a->ep, back.data(), back.size(), nullptr, a_to_b, 0, kKey, nullptr), 0);
    ASSERT_TRUE(run_until_done(4));
    EXPECT_EQ(back[8], last);
    EXPECT_EQ(back[0], round + 1);
    EXPECT_EQ(memory[599'999], round + 1);
  }
}

TEST_F(ProviderOrder, FenceWaitsForEarlierOperations) {
  start({.caps = FI_FENCE});
  std::vector<std::uint8_t> bytes(700'000), back(700'000);
  for (std::uint8_t round = 1; round < 30; ++round) {
    std::fill(bytes.begin(), bytes.end(), round);
    done_a.clear();
    done_b.clear();
    ASSERT_EQ(fi_write(a->ep, bytes.data(), bytes.size(), nullptr, a_to_b, 0, kKey, nullptr), 0);
    const iovec iov{back.data(), back.size()};
    const fi_rma_iov remote{0, back.size(), kKey};
    fi_msg_rma m{};
    m.msg_iov = &iov;
    m.iov_count = 1;
    m.addr = a_to_b;
    m.rma_iov = &remote;
    m.rma_iov_count = 1;
    ASSERT_EQ(fi_readmsg(a->ep, &m, FI_FENCE | FI_COMPLETION), 0);
    int got = 0;
    ASSERT_EQ(fi_trecv(b->ep, &got, 4, nullptr, b_to_a, 1, 0, nullptr), 0);
    const int value = round;
    const iovec one{const_cast<int*>(&value), 4};
    fi_msg_tagged send{};
    send.msg_iov = &one;
    send.iov_count = 1;
    send.addr = a_to_b;
    send.tag = 1;
    ASSERT_EQ(fi_tsendmsg(a->ep, &send, FI_FENCE | FI_COMPLETION), 0);
    ASSERT_TRUE(run_until([&] { return !done_b.empty(); }));
    // The write and the read have ended before the send began.
    EXPECT_GE(done_a.size(), 2u);
    EXPECT_EQ(back, bytes);
    ASSERT_TRUE(run_until_done(3));
  }
}

TEST_F(ProviderOrder, FenceNeedsItsCapability) {
  start({});
  const int value = 1;
  const iovec one{const_cast<int*>(&value), 4};
  fi_msg_tagged m{};
  m.msg_iov = &one;
  m.iov_count = 1;
  m.addr = a_to_b;
  EXPECT_EQ(fi_tsendmsg(a->ep, &m, FI_FENCE), -FI_EINVAL);
}

TEST_F(ProviderOrder, OperationsBehindWriteEndWithEndpoint) {
  start({.order = FI_ORDER_SAW});
  std::vector<std::uint8_t> bytes(600'000);
  ASSERT_EQ(fi_write(a->ep, bytes.data(), bytes.size(), nullptr, a_to_b, 0, kKey, nullptr), 0);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(fi_tinject(a->ep, &i, 4, a_to_b, 1), 0);
  a.reset();  // the other side never answers
  EXPECT_TRUE(errors.empty());
}

TEST_F(ProviderOrder, UnknownSenderIsReported) {
  make({.caps = FI_SOURCE_ERR});
  ASSERT_EQ(fi_av_remove(b->av, &b_to_a, 1, 0), 0);
  int got = 0;
  const int value = 5;
  ASSERT_EQ(fi_trecv(b->ep, &got, 4, nullptr, FI_ADDR_UNSPEC, 1, 0, &got), 0);
  ASSERT_TRUE(send_tagged(&value, 4, 1));
  fi_cq_tagged_entry entry{};
  ssize_t n = 0;
  ASSERT_TRUE(run_until([&] {
    n = fi_cq_read(b->cq, &entry, 1);
    return n != -FI_EAGAIN;
  }));
  ASSERT_EQ(n, -FI_EAVAIL);
  Name sender;
  fi_cq_err_entry error{};
  error.err_data = &sender;
  error.err_data_size = sizeof sender;
  ASSERT_EQ(fi_cq_readerr(b->cq, &error, 0), 1);
  EXPECT_EQ(error.err, FI_EADDRNOTAVAIL);
  EXPECT_EQ(error.op_context, &got);
  EXPECT_EQ(error.err_data_size, sizeof sender);
  EXPECT_EQ(sender, a->name());
  EXPECT_EQ(got, 5);
  // The reported address can be used to answer.
  EXPECT_NE(b->know(sender), FI_ADDR_NOTAVAIL);
}

// --- event queues and poll sets ----------------------------------------------------------------

fid_eq* open_events(const Side& side, fi_wait_obj wait) {
  fi_eq_attr attr{};
  attr.wait_obj = wait;
  fid_eq* events = nullptr;
  EXPECT_EQ(fi_eq_open(side.fabric, &attr, &events, nullptr), 0);
  return events;
}

TEST_F(Provider, EventQueueWakesItsWaiter) {
  for (const fi_wait_obj wait : {FI_WAIT_UNSPEC, FI_WAIT_FD}) {
    fid_eq* const events = open_events(*a, wait);
    std::uint32_t event = 0;
    fi_eq_entry entry{};
    const auto begin = Link::now_us();
    EXPECT_EQ(fi_eq_sread(events, &event, &entry, sizeof entry, 100, 0), -FI_EAGAIN);
    EXPECT_GE(Link::now_us() - begin, 100'000u);
    int fd = -1;
    ASSERT_EQ(fi_control(&events->fid, FI_GETWAIT, &fd), 0);
    pollfd ready{fd, POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 0), 0);
    std::array<fid*, 1> fids = {&events->fid};
    EXPECT_EQ(fi_trywait(a->fabric, fids.data(), 1), 0);
    std::thread writer([&] {
      usleep(20'000);
      const fi_eq_entry sent{nullptr, &writer, 42};
      EXPECT_EQ(fi_eq_write(events, FI_NOTIFY, &sent, sizeof sent, 0), ssize_t{sizeof sent});
    });
    EXPECT_EQ(fi_eq_sread(events, &event, &entry, sizeof entry, -1, FI_PEEK),
              ssize_t{sizeof entry});
    writer.join();
    EXPECT_EQ(::poll(&ready, 1, 0), 1);
    EXPECT_EQ(fi_trywait(a->fabric, fids.data(), 1), -FI_EAGAIN);
    EXPECT_EQ(fi_eq_sread(events, &event, &entry, 3, -1, 0), -FI_ETOOSMALL);
    EXPECT_EQ(fi_eq_sread(events, &event, &entry, sizeof entry, -1, 0), ssize_t{sizeof entry});
    EXPECT_EQ(entry.data, 42u);
    EXPECT_EQ(::poll(&ready, 1, 0), 0);
    EXPECT_EQ(fi_eq_read(events, nullptr, &entry, sizeof entry, 0), -FI_EINVAL);
    EXPECT_EQ(fi_eq_write(events, FI_NOTIFY, nullptr, 8, 0), -FI_EINVAL);
    EXPECT_EQ(fi_close(&events->fid), 0);
  }
}

TEST_F(Provider, EventQueueWithoutWaitObjectRefusesWaiting) {
  fid_eq* const events = open_events(*a, FI_WAIT_NONE);
  std::uint32_t event = 0;
  int fd = -1;
  EXPECT_EQ(fi_eq_sread(events, &event, nullptr, 0, -1, 0), -FI_EINVAL);
  EXPECT_EQ(fi_control(&events->fid, FI_GETWAIT, &fd), -FI_ENODATA);
  EXPECT_EQ(fi_eq_write(events, FI_NOTIFY, nullptr, 0, 0), 0);
  EXPECT_EQ(fi_eq_read(events, &event, nullptr, 0, 0), 0);
  EXPECT_EQ(event, std::uint32_t{FI_NOTIFY});
  EXPECT_EQ(fi_close(&events->fid), 0);
}

TEST_F(Provider, PollSetReturnsMembersWithEvents) {
  fid_poll* set = nullptr;
  fi_poll_attr attr{};
  ASSERT_EQ(fi_poll_open(b->domain, &attr, &set), 0);
  ASSERT_EQ(fi_poll_add(set, &b->cq->fid, 0), 0);
  ASSERT_EQ(fi_poll_add(set, &b->counter->fid, 0), 0);
  EXPECT_EQ(fi_poll_add(set, &b->ep->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_poll_add(set, nullptr, 0), -FI_EINVAL);
  std::array<void*, 4> contexts{};
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
  int got = 0;
  const int value = 5;
  ASSERT_EQ(fi_trecv(b->ep, &got, 4, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  ASSERT_TRUE(send_only(&value, 4, 1));
  const auto end = Link::now_us() + kTimeoutUs;
  int found = 0;
  while (found < 2 && Link::now_us() < end) {
    fi_cq_tagged_entry entry{};
    a->poll(entry);
    found += fi_poll(set, contexts.data() + found, found == 0 ? 4 : 1);
  }
  EXPECT_NE(std::find(contexts.begin(), contexts.end(), b->cq->fid.context), contexts.end());
  fi_cq_tagged_entry entry{};
  EXPECT_TRUE(b->poll(entry));
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
  EXPECT_EQ(fi_poll_del(set, &b->cq->fid, 0), 0);
  EXPECT_EQ(fi_poll_del(set, &b->cq->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

// --- a job of an address file ------------------------------------------------------------------

struct AddressFile {
  AddressFile() {
    std::string name = testing::TempDir() + "pm_fi.XXXXXX";
    directory = mkdtemp(name.data());
    path = directory + "/job";
    std::ofstream(path) << "key 1234abcd\ndevice none\nshmem " << directory
                        << "/context\nrank 0 here -\nrank 1 here -\n";
  }

  ~AddressFile() {
    for (const char* name : {"/job", "/context.0", "/context.1"}) {
      unlink((directory + name).c_str());
    }
    rmdir(directory.c_str());
  }

  std::string directory, path;
};

// Runs one rank of the job: the client sends a number and the server returns it. Returns true on
// success.
bool exchange(const Side& side, bool is_client, int rounds) {
  if (side.ep == nullptr) return false;
  Name peer = side.name();
  peer.rank = 1 - peer.rank;
  const fi_addr_t other = side.know(peer);
  const auto end = Link::now_us() + 20'000'000;
  fi_cq_tagged_entry entry{};
  const auto say = [&](int number) {
    ssize_t error = -FI_EAGAIN;
    while (error == -FI_EAGAIN && Link::now_us() < end) {
      error = fi_tinject(side.ep, &number, 4, other, 1);
      side.poll(entry);
    }
    return error == 0;
  };
  for (int i = 0; i < rounds; ++i) {
    int got = -1;
    if (fi_trecv(side.ep, &got, 4, nullptr, other, 1, 0, nullptr) != 0) return false;
    if (is_client && !say(i)) return false;
    while (got == -1 && Link::now_us() < end) side.poll(entry);
    if (got != i || (!is_client && !say(i))) return false;
  }
  return true;
}

TEST(ProviderAddressFile, ClientMayReopenItsDomain) {
  constexpr int kTimes = 3, kRounds = 50;
  const AddressFile file;
  std::array<pid_t, 2> ranks{};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ranks[rank] = fork();
    if (ranks[rank] != 0) continue;
    setenv("PM_ADDRESS_FILE", file.path.c_str(), 1);
    setenv("PM_RANK", std::to_string(rank).c_str(), 1);
    bool went_well = true;
    // The server keeps one domain; the client opens a new one for each part.
    if (rank == 0) {
      const Side side;
      for (int i = 0; i < kTimes; ++i) went_well = went_well && exchange(side, false, kRounds);
    }
    for (int i = 0; rank == 1 && i < kTimes; ++i) {
      const Side side;
      went_well = went_well && exchange(side, true, kRounds);
    }
    _exit(went_well && !testing::Test::HasFailure() ? 0 : 1);
  }
  for (const pid_t rank : ranks) {
    int status = -1;
    ASSERT_EQ(waitpid(rank, &status, 0), rank);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

}  // namespace
}  // namespace score::pm::fi

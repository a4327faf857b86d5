// A TestJob is a job of several endpoints in one process, over a chosen device.
#pragma once

#include "pmlib/devices/udp_device.hpp"
#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/network/network.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace score::pm {

class TestJob {
 public:
  // With Copies, shared memory works without cross-memory attach.
  enum class Over { Shmem, Udp, Copies };

  TestJob(Over over, std::uint32_t size, EndpointOptions options = {}) {
    options.may_cross = over != Over::Copies;
    network_.key = 0xabcdef;
    network_.device.kind = over == Over::Udp ? DeviceKind::Udp : DeviceKind::None;
    for (std::uint32_t i = 0; i < size; ++i) network_.ranks.push_back({"host", "127.0.0.1:0"});
    std::vector<std::unique_ptr<MappedSegment>> contexts;
    std::vector<std::unique_ptr<UdpDevice>> devices(size);
    int error = 0;
    for (std::uint32_t i = 0; i < size; ++i) {
      contexts.push_back(create_context(network_, i, over != Over::Udp, "", error));
      if (over == Over::Udp) {
        devices[i] = UdpDevice::open({{127, 0, 0, 1, 0, 0}}, 48 + network_.payload_bytes, error);
      }
      fds_.push_back(dup(contexts[i]->fd()));
    }
    for (std::uint32_t i = 0; over == Over::Udp && i < size; ++i) {
      for (std::uint32_t k = 0; k < size; ++k) {
        contexts[i]->segment().peer(k).address = devices[k]->own_address();
      }
    }
    for (std::uint32_t i = 0; i < size; ++i) {
      endpoints_.push_back(Endpoint::make(
          std::move(contexts[i]), std::move(devices[i]),
          [this](std::uint32_t peer) { return dup(fds_[peer]); }, options, error));
      EXPECT_EQ(error, 0);
    }
  }

  ~TestJob() {
    endpoints_.clear();
    for (const int fd : fds_) close(fd);
  }

  Endpoint& operator[](std::size_t rank) { return *endpoints_[rank]; }

  void close_rank(std::size_t rank) { endpoints_[rank].reset(); }

  const JobNetwork& network() const { return network_; }

  // Runs every rank until `done` returns true.
  template <class Done>
  void run_until(Done done) {
    for (int i = 0; i < 2'000'000; ++i) {
      if (done()) return;
      for (auto& endpoint : endpoints_) {
        if (endpoint) endpoint->progress();
      }
    }
    FAIL() << "did not happen";
  }

  void send(std::uint32_t from, std::uint32_t to, const std::string& text) {
    std::byte* buffer = nullptr;
    int error = ENOBUFS;
    run_until([&] {
      error =
          endpoints_[from]->get_send_buffer(to, static_cast<std::uint32_t>(text.size()), &buffer);
      return error != ENOBUFS;
    });
    ASSERT_EQ(error, 0);
    std::memcpy(buffer, text.data(), text.size());
    run_until([&] { return (error = endpoints_[from]->send()) != ENOBUFS; });
    ASSERT_EQ(error, 0);
  }

  std::string receive(std::uint32_t at, std::uint32_t* source = nullptr) {
    ReceivedMessage message;
    run_until([&] { return endpoints_[at]->receive(message) == 0; });
    std::string text(reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size());
    if (source != nullptr) *source = message.source;
    endpoints_[at]->release(message);
    return text;
  }

  int finish(std::uint32_t at, OperationId op) {
    int result = EINPROGRESS;
    run_until([&] { return (result = endpoints_[at]->test(op)) != EINPROGRESS; });
    return result;
  }

 private:
  JobNetwork network_;
  std::vector<int> fds_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

}  // namespace score::pm

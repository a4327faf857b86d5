// An endpoint can be opened in three ways: from the environment that scored sets, from a broker, or
// from an address file.
#include "pmlib/devices/open_device.hpp"
#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/network/broker.hpp"
#include "pmlib/network/network.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

namespace score::pm {

namespace {

// Returns -1 if `name` is not set to a number.
int number_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return -1;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return *end == '\0' && value >= 0 && value < 1 << 20 ? static_cast<int>(value) : -1;
}

// Returns the index of the context of `peer` among those of the node's ranks.
std::size_t local_index(const Segment& segment, std::uint32_t peer) {
  std::size_t index = 0;
  for (std::uint32_t i = 0; i < peer; ++i) {
    const Route route = segment.peer(i).route;
    index += route == Route::Shmem || route == Route::Self ? 1 : 0;
  }
  return index;
}

}  // namespace

std::unique_ptr<Endpoint> Endpoint::open_inherited(int& error) {
  const int fd = number_from_environment("PM_CONTEXT_FD");
  const int broker = number_from_environment(kBrokerVariable);
  error = ENOENT;
  if (fd < 0) return broker < 0 ? nullptr : open_brokered(broker, error);
  auto context = MappedSegment::attach(fcntl(fd, F_DUPFD_CLOEXEC, 0), error);
  if (!context) return nullptr;
  const Segment segment = context->segment();
  const int socket = number_from_environment("PM_DEVICE_FD");
  auto device = open_device(segment, {&socket, 1}, error);
  if (error != 0) return nullptr;
  const int first = number_from_environment("PM_LOCAL_FDS");
  auto open_peer = [segment, first](std::uint32_t peer) {
    const auto index = static_cast<int>(local_index(segment, peer));
    return first < 0 ? -1 : fcntl(first + index, F_DUPFD_CLOEXEC, 0);
  };
  return make(std::move(context), std::move(device), open_peer, {}, error);
}

std::unique_ptr<Endpoint> Endpoint::open_brokered(int broker, int& error) {
  auto got = std::make_shared<BrokeredContext>();
  error = ask_broker(broker, *got);
  if (error != 0) return nullptr;
  auto context = MappedSegment::attach(fcntl(got->contexts[got->own], F_DUPFD_CLOEXEC, 0), error);
  if (!context) return nullptr;
  const Segment segment = context->segment();
  const auto sockets = needs_device(segment) ? std::exchange(got->devices, {}) : std::vector<int>();
  auto device = open_device(segment, sockets, error);
  if (error != 0) return nullptr;
  auto open_peer = [segment, got](std::uint32_t peer) {
    const std::size_t index = local_index(segment, peer);
    return index < got->contexts.size() ? fcntl(got->contexts[index], F_DUPFD_CLOEXEC, 0) : -1;
  };
  return make(std::move(context), std::move(device), open_peer, {}, error);
}

std::unique_ptr<Endpoint> Endpoint::open_file(const std::string& path, std::uint32_t rank,
                                              int& error, std::string& message) {
  std::ifstream file(path);
  if (!file) {
    error = errno;
    message = path + ": cannot open address file";
    return nullptr;
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  JobNetwork network;
  error = EINVAL;
  if (!parse_network(text, network, message)) {
    message = path + ": " + message;
    return nullptr;
  }
  const bool with_shmem = !network.shmem.empty();
  const std::string own = with_shmem ? network.shmem + "." + std::to_string(rank) : std::string();
  auto context = create_context(network, rank, with_shmem, own, error);
  if (!context) return nullptr;
  auto device = open_device(context->segment(), {}, error);
  if (error != 0) return nullptr;
  auto open_peer = [base = network.shmem](std::uint32_t peer) {
    return open((base + "." + std::to_string(peer)).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  };
  auto endpoint = make(std::move(context), std::move(device), open_peer, {}, error);
  if (endpoint) endpoint->path_ = own;
  return endpoint;
}

}  // namespace score::pm

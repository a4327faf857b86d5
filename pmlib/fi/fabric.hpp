// Fabric and event queue, the objects above all others; and the opening of a domain.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <sys/types.h>
#include <vector>

namespace score::pm::fi {

struct Fabric : fid_fabric {
  using Base = fid_fabric;
  static int open(fi_fabric_attr* attr, fid_fabric** fabric, void* context);
};

// Events that are not completions: this provider makes none, so only what the application writes.
class EventQueue : public fid_eq {
 public:
  using Base = fid_eq;

  explicit EventQueue(void* context);
  ssize_t read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
  ssize_t write(std::uint32_t event, const void* buffer, std::size_t length);

 private:
  struct Event {
    std::uint32_t number;
    std::vector<std::byte> bytes;
  };

  std::mutex mutex_;
  std::deque<Event> events_;
};

// As fi_domain(3).
int open_domain(const fi_info& info, fid_domain** domain, void* context);

}  // namespace score::pm::fi

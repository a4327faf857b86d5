// Frames are copied into the device's own buffers, because a reliable endpoint may read them long
// after send() has returned. If no buffer is free, the frame is not taken and is offered again. A
// failed completion is only a lost frame: the go-back-N resends it.
#include "pmlib/devices/ofi_device.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <netinet/in.h>
#include <string>
#include <sys/timerfd.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

// libfabric's headers are C code that triggers these warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#pragma GCC diagnostic pop

namespace score::pm {

namespace {

constexpr std::size_t kBuffers = 128;  // per direction
constexpr std::uint32_t kApi = FI_VERSION(1, 14);
constexpr long kTickNs = 1'000'000;  // interval of polls if the provider cannot wake us

struct Library {
  int (*getinfo)(std::uint32_t, const char*, const char*, std::uint64_t, const fi_info*,
                 fi_info**) = nullptr;
  void (*freeinfo)(fi_info*) = nullptr;
  fi_info* (*dupinfo)(const fi_info*) = nullptr;
  int (*fabric)(fi_fabric_attr*, fid_fabric**, void*) = nullptr;

  bool is_complete() const { return getinfo && freeinfo && dupinfo && fabric; }
};

template <class F>
void look_up(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
}

const Library& library() {
  static const Library loaded = [] {
    Library l;
    void* handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return l;
    look_up(handle, "fi_getinfo", l.getinfo);
    look_up(handle, "fi_freeinfo", l.freeinfo);
    look_up(handle, "fi_dupinfo", l.dupinfo);
    look_up(handle, "fi_fabric", l.fabric);
    return l;
  }();
  return loaded;
}

template <class T>
void close_fid(T*& object) {
  if (object != nullptr) fi_close(&object->fid);
  object = nullptr;
}

std::uint64_t key_of(const PeerAddress& address) {
  std::uint64_t key = 0;
  std::memcpy(&key, address.bytes.data(), address.bytes.size());
  return key;
}

std::string host_of(const PeerAddress& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, address.bytes.data(), text.data(), text.size());
  return text.data();
}

std::string service_of(const PeerAddress& address) {
  std::uint16_t port = 0;
  std::memcpy(&port, address.bytes.data() + 4, sizeof port);
  return std::to_string(ntohs(port));
}

// Returns the requirements of a device for `provider`, or null without memory. The caller frees it.
fi_info* hints_for(const char* provider) {
  fi_info* hints = library().dupinfo(nullptr);
  if (hints == nullptr) return nullptr;
  hints->caps = FI_MSG;
  hints->mode = FI_CONTEXT;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  hints->fabric_attr->prov_name = strdup(provider);
  return hints;
}

class Device final : public OfiDevice {
 public:
  explicit Device(std::size_t frame_bytes) : frame_bytes_(frame_bytes) {}

  ~Device() override {
    close_fid(endpoint_);
    close_fid(memory_);
    close_fid(queue_);
    close_fid(addresses_);
    close_fid(domain_);
    close_fid(fabric_);
    if (info_ != nullptr) library().freeinfo(info_);
    if (timer_fd_ >= 0) close(timer_fd_);
  }

  int start(const Segment& segment, std::size_t link) {
    const SegmentHeader& h = segment.header();
    const std::uint32_t rank = h.rank;
    const char* provider =
        link == 0 ? h.device.provider.data() : h.more_links[link - 1].name.data();
    const int missing = find_provider(provider, segment.link_address(link, rank));
    if (missing != 0) return missing;
    if (const int error = open_objects(); error != 0) return error;
    for (std::uint32_t i = 0; i < segment.geometry().size; ++i) {
      if (i == rank || segment.peer(i).route != Route::Packet) continue;
      if (const int error = insert(segment.link_address(link, i)); error != 0) return error;
    }
    return 0;
  }

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override {
    const auto found = peers_.find(key_of(to));
    if (found == peers_.end()) return frames.size();  // unknown peer: the frame is lost
    std::size_t sent = 0;
    for (; sent < frames.size(); ++sent) {
      if (free_.empty()) reap(nullptr, kBuffers);
      if (free_.empty() || !send_one(found->second, frames[sent])) break;
    }
    return sent;
  }

  std::size_t receive(FrameSink& sink, std::size_t limit) override { return reap(&sink, limit); }

  int poll_fd() const override { return wait_fd_ >= 0 ? wait_fd_ : timer_fd_; }

  bool prepare_to_sleep() override {
    if (wait_fd_ < 0) {
      std::uint64_t ticks = 0;
      [[maybe_unused]] const ssize_t n = read(timer_fd_, &ticks, sizeof ticks);
      return true;
    }
    fid* waited = &queue_->fid;
    return fi_trywait(fabric_, &waited, 1) == 0;
  }

  std::size_t frame_bytes() const override { return frame_bytes_; }

 private:
  struct Buffer {
    fi_context context{};  // must be first, because completions point to it
    std::byte* bytes = nullptr;
    bool is_receive = false;
  };

  int find_provider(const char* provider, const PeerAddress& own) {
    if (!library().is_complete()) return ENOSYS;
    fi_info* hints = hints_for(provider);
    if (hints == nullptr) return ENOMEM;
    const int error = library().getinfo(kApi, host_of(own).c_str(), service_of(own).c_str(),
                                        FI_SOURCE, hints, &info_);
    library().freeinfo(hints);
    return error == 0 ? 0 : ENOSYS;
  }

  int open_objects() {
    fi_av_attr av{};
    av.type = FI_AV_UNSPEC;
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_MSG;
    cq.size = 2 * kBuffers;
    cq.wait_obj = FI_WAIT_FD;
    int error = library().fabric(info_->fabric_attr, &fabric_, nullptr);
    if (error == 0) error = fi_domain(fabric_, info_, &domain_, nullptr);
    if (error == 0) error = fi_av_open(domain_, &av, &addresses_, nullptr);
    if (error != 0) return -error;
    if (fi_cq_open(domain_, &cq, &queue_, nullptr) == 0) {
      fi_control(&queue_->fid, FI_GETWAIT, &wait_fd_);
    } else {
      cq.wait_obj = FI_WAIT_NONE;
      if (error = fi_cq_open(domain_, &cq, &queue_, nullptr); error != 0) return -error;
      if (error = start_timer(); error != 0) return error;
    }
    error = fi_endpoint(domain_, info_, &endpoint_, nullptr);
    if (error == 0) error = fi_ep_bind(endpoint_, &addresses_->fid, 0);
    if (error == 0) error = fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV);
    if (error == 0) error = fi_enable(endpoint_);
    return error != 0 ? -error : make_buffers();
  }

  int start_timer() {
    timer_fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    const itimerspec every{{0, kTickNs}, {0, kTickNs}};
    return timer_fd_ >= 0 && timerfd_settime(timer_fd_, 0, &every, nullptr) == 0 ? 0 : errno;
  }

  int make_buffers() {
    memory_bytes_.resize(2 * kBuffers * frame_bytes_);
    if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
      const int error = fi_mr_reg(domain_, memory_bytes_.data(), memory_bytes_.size(),
                                  FI_SEND | FI_RECV, 0, 0, 0, &memory_, nullptr);
      if (error != 0) return -error;
    }
    buffers_.resize(2 * kBuffers);
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].bytes = memory_bytes_.data() + i * frame_bytes_;
      buffers_[i].is_receive = i < kBuffers;
      if (!buffers_[i].is_receive) {
        free_.push_back(&buffers_[i]);
      } else if (const int error = post(buffers_[i]); error != 0) {
        return error;
      }
    }
    return 0;
  }

  void* descriptor() const { return memory_ != nullptr ? fi_mr_desc(memory_) : nullptr; }

  int post(Buffer& buffer) {
    const ssize_t error = fi_recv(endpoint_, buffer.bytes, frame_bytes_, descriptor(),
                                  FI_ADDR_UNSPEC, &buffer.context);
    return static_cast<int>(-error);
  }

  // The shm provider takes a text as the address, all others a socket address.
  int insert(const PeerAddress& address) {
    fi_addr_t entry = FI_ADDR_UNSPEC;
    int count = 0;
    if (info_->addr_format == FI_ADDR_STR) {
      const std::string name = "fi_ns://" + host_of(address) + ":" + service_of(address);
      count = fi_av_insert(addresses_, name.c_str(), 1, &entry, 0, nullptr);
    } else {
      sockaddr_in name{};
      name.sin_family = AF_INET;
      std::memcpy(&name.sin_addr, address.bytes.data(), 4);
      std::memcpy(&name.sin_port, address.bytes.data() + 4, 2);
      count = fi_av_insert(addresses_, &name, 1, &entry, 0, nullptr);
    }
    if (count != 1) return EADDRNOTAVAIL;
    peers_[key_of(address)] = entry;
    return 0;
  }

  bool send_one(fi_addr_t to, const FrameOut& frame) {
    Buffer* buffer = free_.back();
    std::byte* end = std::copy(frame.head.begin(), frame.head.end(), buffer->bytes);
    std::copy(frame.body.begin(), frame.body.end(), end);
    const ssize_t error =
        fi_send(endpoint_, buffer->bytes, frame.size(), descriptor(), to, &buffer->context);
    if (error == -FI_EAGAIN) return false;
    if (error == 0) free_.pop_back();  // after any other error the frame is lost
    return true;
  }

  // Takes completions. Frames go to `sink`; without a sink they are dropped and will be resent.
  std::size_t reap(FrameSink* sink, std::size_t limit) {
    std::size_t frames = 0;
    for (std::size_t i = 0; i < limit; ++i) {
      fi_cq_msg_entry entry{};
      const ssize_t n = fi_cq_read(queue_, &entry, 1);
      if (n == -FI_EAVAIL) {
        take_failure();
        continue;
      }
      if (n != 1) break;
      auto* buffer = static_cast<Buffer*>(entry.op_context);
      if (!buffer->is_receive) {
        free_.push_back(buffer);
        continue;
      }
      if (sink != nullptr) sink->on_frame({buffer->bytes, std::min(entry.len, frame_bytes_)});
      ++frames;
      post(*buffer);
    }
    return frames;
  }

  void take_failure() {
    fi_cq_err_entry failed{};
    if (fi_cq_readerr(queue_, &failed, 0) != 1 || failed.op_context == nullptr) return;
    auto* buffer = static_cast<Buffer*>(failed.op_context);
    if (!buffer->is_receive) {
      free_.push_back(buffer);
    } else if (failed.err != FI_ECANCELED) {
      post(*buffer);
    }
  }

  std::size_t frame_bytes_;
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fid_mr* memory_ = nullptr;
  int wait_fd_ = -1;
  int timer_fd_ = -1;
  std::vector<std::byte> memory_bytes_;
  std::vector<Buffer> buffers_;
  std::vector<Buffer*> free_;
  std::unordered_map<std::uint64_t, fi_addr_t> peers_;
};

}  // namespace

bool OfiDevice::has_provider(const char* provider) {
  fi_info* hints = library().is_complete() ? hints_for(provider) : nullptr;
  if (hints == nullptr) return false;
  fi_info* found = nullptr;
  const int error = library().getinfo(kApi, nullptr, nullptr, 0, hints, &found);
  library().freeinfo(hints);
  if (found != nullptr) library().freeinfo(found);
  return error == 0;
}

std::unique_ptr<PacketDevice> OfiDevice::open(const Segment& segment, std::size_t link,
                                              int& error) {
  auto device = std::make_unique<Device>(sizeof(FrameHeader) + segment.geometry().payload_bytes);
  error = device->start(segment, link);
  if (error != 0) return nullptr;
  return device;
}

}  // namespace score::pm

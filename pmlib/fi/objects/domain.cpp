// Implements the domain and the registration of memory. Registration only enters the memory in a
// table of the domain: PM's own regions, which are few, are used only during a transfer.
#include "pmlib/fi/objects/no_ops.hpp"
#include "pmlib/fi/objects/objects.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <poll.h>

namespace score::pm::fi {

namespace {

constexpr int kProgressPauseMs = 2;  // of the progress thread, when nothing wakes it

int close_domain(fid* f) {
  Domain& domain = object_of<Domain>(f);
  if (domain.users > 0) return -FI_EBUSY;
  delete &domain;
  return 0;
}

int close_memory(fid* f) {
  Mr& mr = object_of<Mr>(f);
  Guard guard(mr.domain.link());
  mr.domain.forget(mr.key);
  --mr.domain.users;
  delete &mr;
  return 0;
}

int bind_memory(fid* f, fid* other, std::uint64_t) {
  if (other == nullptr) return -FI_EINVAL;
  if (other->fclass == FI_CLASS_EP) return 0;
  if (other->fclass != FI_CLASS_CNTR) return -FI_EINVAL;
  object_of<Mr>(f).counter = &object_of<Counter>(other);
  return 0;
}

int control_memory(fid*, int command, void*) {
  return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

int register_attr(fid* f, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** mr) {
  if (attr == nullptr || attr->mr_iov == nullptr || mr == nullptr) return -FI_EINVAL;
  return object_of<Domain>(f).register_memory(*attr, flags, mr);
}

int register_iov(fid* f, const iovec* iov, std::size_t count, std::uint64_t access,
                 std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** mr,
                 void* context) {
  fi_mr_attr attr{};
  attr.mr_iov = iov;
  attr.iov_count = count;
  attr.access = access;
  attr.offset = offset;
  attr.requested_key = key;
  attr.context = context;
  return register_attr(f, &attr, flags, mr);
}

int register_buffer(fid* f, const void* buffer, std::size_t length, std::uint64_t access,
                    std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** mr,
                    void* context) {
  const iovec iov{const_cast<void*>(buffer), length};
  return register_iov(f, &iov, 1, access, offset, key, flags, mr, context);
}

int no_bind(fid*, fid*, std::uint64_t) {
  return 0;  // an event queue: there are no events
}

fi_ops domain_fid_ops = {sizeof(fi_ops), close_domain, no_bind, no_op, no_op, nullptr, nullptr};
fi_ops_mr memory_ops = {sizeof(fi_ops_mr), register_buffer, register_iov, register_attr};
fi_ops memory_fid_ops = {sizeof(fi_ops), close_memory, bind_memory, control_memory,
                         no_op,          nullptr,      nullptr};

// Returns true if the application asks for this part of FI_MR_BASIC. Old applications ask for
// FI_MR_BASIC as a whole, newer ones for its three parts.
bool wants(const fi_info& info, int part) {
  const int mode = info.domain_attr->mr_mode;
  return mode == kMrBasic || (mode != kMrScalable && (mode & part) != 0);
}

}  // namespace

Domain::Domain(std::shared_ptr<Link> link, const fi_info& info, void* context,
               fi_ops_domain* no_ops)
    : fid_domain{{FI_CLASS_DOMAIN, context, &domain_fid_ops}, no_ops, &memory_ops},
      link_(std::move(link)),
      uses_addresses_(wants(info, FI_MR_VIRT_ADDR)),
      makes_keys_(wants(info, FI_MR_PROV_KEY)),
      uses_text_(info.addr_format == FI_ADDR_STR) {
  const fi_domain_attr& attr = *info.domain_attr;
  const bool is_auto = attr.data_progress == FI_PROGRESS_AUTO;
  const bool is_serialized = attr.threading == FI_THREAD_DOMAIN;
  if (link_.use_count() == 1 && is_serialized && !is_auto) link_->needs_lock = false;
  if (is_auto) thread_ = std::thread([this] { run(); });
}

Domain::~Domain() {
  stops_ = true;
  link_->wait_set().wake();
  if (thread_.joinable()) thread_.join();
}

// Makes progress without calls of the application.
void Domain::run() {
  while (!stops_) {
    int pause_ms = 0;
    bool is_awaited = false;  // then the sleeping thread makes progress itself
    {
      Guard guard(*link_);
      is_awaited = link_->wait_set().has_sleepers();
      pause_ms = is_awaited || link_->prepare_to_wait() ? kProgressPauseMs : 0;
    }
    pollfd ready{link_->wait_set().fd(), POLLIN, 0};
    poll(&ready, is_awaited ? 0 : 1, pause_ms);
  }
}

// --- addresses ---------------------------------------------------------------------------------

std::string Domain::address_of(const Name& name) const {
  if (!uses_text_) return {reinterpret_cast<const char*>(&name), sizeof name};
  std::string text = to_address(name);
  text.push_back('\0');
  return text;
}

bool Domain::read(const void* address, Name& name) const {
  if (!uses_text_) return read_name(address, name);
  return address != nullptr && parse_name(static_cast<const char*>(address), name);
}

// --- memory ------------------------------------------------------------------------------------

int Domain::register_memory(const fi_mr_attr& attr, std::uint64_t, fid_mr** region) {
  if (attr.iov_count != 1) return attr.iov_count == 0 ? -FI_EINVAL : -FI_ENOSYS;
  if (attr.iface != FI_HMEM_SYSTEM) return -FI_ENOSYS;
  Guard guard(*link_);
  std::uint64_t key = attr.requested_key;
  if (makes_keys_) {
    key = next_key_++;
  } else if (memory_.contains(key)) {
    return -FI_ENOKEY;
  }
  auto* made = new (std::nothrow) Mr(*this, attr, key, uses_addresses_);
  if (made == nullptr) return -FI_ENOMEM;
  memory_[key] = made;
  ++users;
  *region = made;
  return 0;
}

int Domain::locate(std::uint64_t key, std::uint64_t address, std::uint64_t length,
                   std::uint64_t access, std::span<std::byte>& memory) const {
  const auto found = memory_.find(key);
  if (found == memory_.end()) return FI_EKEYREJECTED;
  const Mr& r = *found->second;
  const std::uint64_t base = r.uses_addresses ? reinterpret_cast<std::uintptr_t>(r.start) : 0;
  const std::uint64_t offset = address - base;
  if ((r.access & access) != access) return EACCES;
  if (address < base || offset > r.length || length > r.length - offset) return EINVAL;
  memory = {r.start + offset, static_cast<std::size_t>(length)};
  return 0;
}

Counter* Domain::counter_of(std::uint64_t key) const {
  const auto found = memory_.find(key);
  return found != memory_.end() ? found->second->counter : nullptr;
}

Mr::Mr(Domain& owner, const fi_mr_attr& attr, std::uint64_t number, bool with_addresses)
    : fid_mr{{FI_CLASS_MR, attr.context, &memory_fid_ops}, nullptr, number},
      domain(owner),
      start(static_cast<std::byte*>(attr.mr_iov[0].iov_base)),
      length(attr.mr_iov[0].iov_len),
      access(attr.access),
      uses_addresses(with_addresses) {
  mem_desc = this;
}

}  // namespace score::pm::fi

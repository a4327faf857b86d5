#include "pmlib/fi/objects/no_ops.hpp"
#include "pmlib/fi/objects/objects.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace score::pm::fi {

namespace {

int close_av(fid* f) {
  delete &object_of<Av>(f);
  return 0;
}

int bind_av(fid*, fid*, std::uint64_t) {
  return 0;  // an event queue: insertion is never asynchronous
}

int insert(fid_av* av, const void* names, std::size_t count, fi_addr_t* addresses,
           std::uint64_t flags, void* context) {
  int* const errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
  if (names == nullptr || ((flags & FI_SYNC_ERR) != 0 && errors == nullptr)) return -FI_EINVAL;
  return static_cast<Av*>(av)->insert(names, count, addresses, errors);
}

// A peer is named by a single string, as with FI_ADDR_STR, so `service` must be null.
int insert_service(fid_av* av, const char* node, const char* service, fi_addr_t* address,
                   std::uint64_t flags, void* context) {
  Name name;
  if (node == nullptr || service != nullptr || !parse_name(node, name)) return -FI_EINVAL;
  const std::string bytes = static_cast<Av*>(av)->domain().address_of(name);
  const char* const text = bytes.data();
  const bool uses_text = static_cast<Av*>(av)->domain().uses_text();
  return insert(av, uses_text ? static_cast<const void*>(&text) : text, 1, address, flags, context);
}

int remove(fid_av* av, fi_addr_t* addresses, std::size_t count, std::uint64_t) {
  if (addresses == nullptr) return -FI_EINVAL;
  return static_cast<Av*>(av)->remove(addresses, count);
}

int lookup(fid_av* av, fi_addr_t address, void* name, std::size_t* length) {
  if (length == nullptr || (name == nullptr && *length > 0)) return -FI_EINVAL;
  return static_cast<Av*>(av)->lookup(address, name, length);
}

const char* to_text(fid_av* av, const void* address, char* buffer, std::size_t* length) {
  Name name;
  if (length == nullptr) return nullptr;
  const bool is_name = static_cast<Av*>(av)->domain().read(address, name);
  const std::string text = is_name ? to_string(name) : "no name of pm";
  if (buffer != nullptr && *length > 0) {
    const std::size_t n = std::min(text.size(), *length - 1);
    std::copy_n(text.data(), n, buffer);
    buffer[n] = '\0';
  }
  *length = text.size() + 1;
  return buffer;
}

fi_ops av_fid_ops = {sizeof(fi_ops), close_av, bind_av, no_op, no_op, nullptr, nullptr};

// libfabric 2 has further operations, which it takes for absent where they are null.
constexpr fi_ops_av make_av_ops() {
  fi_ops_av ops{};
  ops.size = sizeof(fi_ops_av);
  ops.insert = insert;
  ops.insertsvc = insert_service;
  ops.insertsym = no_op;
  ops.remove = remove;
  ops.lookup = lookup;
  ops.straddr = to_text;
  ops.av_set = no_op;
  return ops;
}

constinit fi_ops_av av_ops = make_av_ops();

}  // namespace

Av::Av(Domain& domain, void* context)
    : fid_av{{FI_CLASS_AV, context, &av_fid_ops}, &av_ops}, domain_(domain) {
  ++domain_.users;
}

Av::~Av() {
  --domain_.users;
}

fi_addr_t Av::address_of(PortName port) const {
  const auto found = reverse_.find(port.number());
  return found != reverse_.end() ? found->second : FI_ADDR_NOTAVAIL;
}

int Av::insert(const void* names, std::size_t count, fi_addr_t* addresses, int* errors) {
  Guard guard(domain_.link());
  int inserted = 0;
  int first_error = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const void* name = static_cast<const std::byte*>(names) + i * sizeof(Name);
    if (domain_.uses_text()) name = static_cast<const char* const*>(names)[i];
    const int error = insert_one(name, addresses != nullptr ? addresses + i : nullptr);
    if (errors != nullptr) errors[i] = error;
    if (error == 0) ++inserted;
    if (first_error == 0) first_error = error;
  }
  return inserted > 0 ? inserted : -first_error;
}

// Returns 0 or an errno.
int Av::insert_one(const void* address, fi_addr_t* number) {
  Name name;
  PortName port{kRemoved, 0};
  const int error =
      domain_.read(address, name) ? domain_.link().peers().resolve(name, port) : EINVAL;
  if (error != 0) {
    if (number != nullptr) *number = FI_ADDR_NOTAVAIL;
    port.peer = kRemoved;
  }
  // The addresses of a table are the positions of all names, valid or not.
  if (error == 0 || number == nullptr) {
    entries_.push_back(port);
    names_.push_back(name);
  }
  if (error != 0) return error;
  reverse_.emplace(port.number(), entries_.size() - 1);
  if (number != nullptr) *number = entries_.size() - 1;
  return 0;
}

int Av::remove(const fi_addr_t* addresses, std::size_t count) {
  Guard guard(domain_.link());
  for (std::size_t i = 0; i < count; ++i) {
    if (addresses[i] >= entries_.size()) return -FI_EINVAL;
    PortName& port = entries_[addresses[i]];
    const auto found = reverse_.find(port.number());
    const PortName removed = std::exchange(port, {kRemoved, 0});
    if (found == reverse_.end() || found->second != addresses[i]) continue;
    reverse_.erase(found);
    // The same name may have been inserted twice.
    const auto other = std::find(entries_.begin(), entries_.end(), removed);
    if (other != entries_.end()) reverse_[removed.number()] = other - entries_.begin();
  }
  return 0;
}

int Av::lookup(fi_addr_t address, void* name, std::size_t* length) const {
  PortName port;
  if (!find(address, port)) return -FI_EINVAL;
  const std::string bytes = domain_.address_of(names_[address]);
  if (*length > 0) std::memcpy(name, bytes.data(), std::min(*length, bytes.size()));
  *length = bytes.size();
  return 0;
}

}  // namespace score::pm::fi

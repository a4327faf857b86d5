// Opens a domain and holds the table of functions by which a domain opens its objects.
#include "pmlib/fi/addresses.hpp"
#include "pmlib/fi/endpoint/ep.hpp"
#include "pmlib/fi/fabric.hpp"
#include "pmlib/fi/objects/no_ops.hpp"

#include <cerrno>
#include <new>
#include <utility>

namespace score::pm::fi {

namespace {

int open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) {
  if (av == nullptr) return -FI_EINVAL;
  const bool is_plain = attr == nullptr || (attr->name == nullptr && attr->rx_ctx_bits == 0 &&
                                            (attr->flags & FI_EVENT) == 0);
  if (!is_plain) return -FI_ENOSYS;
  *av = new (std::nothrow) Av(*static_cast<Domain*>(domain), context);
  return *av != nullptr ? 0 : -FI_ENOMEM;
}

int open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context) {
  const fi_cq_attr attributes = attr != nullptr ? *attr : fi_cq_attr{};
  const fi_wait_obj wait = attributes.wait_obj;
  if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_FD &&
      wait != FI_WAIT_YIELD) {
    return -FI_ENOSYS;
  }
  *cq = new (std::nothrow) Cq(*static_cast<Domain*>(domain), attributes, context);
  return *cq != nullptr ? 0 : -FI_ENOMEM;
}

int open_counter(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** counter, void* context) {
  const fi_cntr_attr attributes = attr != nullptr ? *attr : fi_cntr_attr{};
  *counter = new (std::nothrow) Counter(*static_cast<Domain*>(domain), attributes, context);
  return *counter != nullptr ? 0 : -FI_ENOMEM;
}

int open_poll_set(fid_domain* domain, fi_poll_attr*, fid_poll** set) {
  if (set == nullptr) return -FI_EINVAL;
  *set = new (std::nothrow) PollSet(*static_cast<Domain*>(domain));
  return *set != nullptr ? 0 : -FI_ENOMEM;
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context) {
  if (info == nullptr || ep == nullptr) return -FI_EINVAL;
  for (const auto& [address, length] : {std::pair{info->src_addr, info->src_addrlen},
                                        std::pair{info->dest_addr, info->dest_addrlen}}) {
    Name name;
    if (address != nullptr && !read_address(info->addr_format, address, length, name)) {
      return -FI_EINVAL;
    }
  }
  return Ep::open(*static_cast<Domain*>(domain), *info, ep, context);
}

int open_endpoint2(fid_domain* domain, fi_info* info, fid_ep** ep, std::uint64_t, void* context) {
  return open_endpoint(domain, info, ep, context);
}

fi_ops_domain domain_ops = {
    sizeof(fi_ops_domain), open_av, open_cq, open_endpoint,    no_op, open_counter,
    open_poll_set,         no_op,   no_op,   Ep::query_atomic, no_op, open_endpoint2};

}  // namespace

int open_domain(const fi_info& info, fid_domain** domain, void* context) {
  if (domain == nullptr || info.domain_attr == nullptr) return -FI_EINVAL;
  Name own;
  if (info.src_addr != nullptr &&
      !read_address(info.addr_format, info.src_addr, info.src_addrlen, own)) {
    return -FI_EINVAL;
  }
  try {
    int error = 0;
    auto link = Link::open(own, error);
    if (!link) return -(error != 0 ? error : EIO);
    *domain = new Domain(std::move(link), info, context, &domain_ops);
    return 0;
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  }
}

}  // namespace score::pm::fi

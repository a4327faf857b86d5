// Opening a domain, and the table of what a domain opens.
#include "pmlib/fi/endpoint/ep.hpp"
#include "pmlib/fi/fabric.hpp"
#include "pmlib/fi/objects/no_ops.hpp"

#include <cerrno>
#include <new>

namespace score::pm::fi {

namespace {

int open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) {
  if (attr != nullptr && (attr->name != nullptr || attr->rx_ctx_bits > 0)) return -FI_ENOSYS;
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

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context) {
  return Ep::open(*static_cast<Domain*>(domain), *info, ep, context);
}

int open_endpoint2(fid_domain* domain, fi_info* info, fid_ep** ep, std::uint64_t, void* context) {
  return open_endpoint(domain, info, ep, context);
}

fi_ops_domain domain_ops = {sizeof(fi_ops_domain),
                            open_av,
                            open_cq,
                            open_endpoint,
                            no_op,
                            open_counter,
                            no_op,
                            no_op,
                            no_op,
                            Ep::query_atomic,
                            no_op,
                            open_endpoint2};

std::uint32_t ip_of(const fi_info& info) {
  Name name;
  if (info.src_addr == nullptr || info.src_addrlen < sizeof name) return 0;
  return read_name(info.src_addr, name) && name.kind == NameKind::Udp ? name.ip : 0;
}

}  // namespace

int open_domain(const fi_info& info, fid_domain** domain, void* context) {
  try {
    int error = 0;
    auto link = Link::open(ip_of(info), error);
    if (!link) return -(error != 0 ? error : EIO);
    *domain = new Domain(std::move(link), info, context, &domain_ops);
    return 0;
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  }
}

}  // namespace score::pm::fi

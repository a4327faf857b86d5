// Contains the entry points of libpm-fi.so. libfabric looks for libraries named lib*-fi.so in
// FI_PROVIDER_PATH and calls fi_prov_ini() of each.
#include "pmlib/fi/fabric.hpp"
#include "pmlib/fi/info.hpp"
#include "pmlib/fi/link/link.hpp"

#include <rdma/providers/fi_prov.h>

namespace {

int open_fabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context) {
  return score::pm::fi::Fabric::open(attr, fabric, context);
}

void clean_up() {
  score::pm::fi::Link::forget_kept();
}

// libfabric offers a provider only to programs that ask for no newer interface than the provider
// reports, and rejects a provider that reports a newer version than its own. So `fi_version` is set
// to the version of the library.
fi_provider provider = {FI_VERSION(1, 0),        FI_VERSION(1, 17), {{nullptr}}, "pm",
                        score::pm::fi::get_info, open_fabric,       clean_up};

}  // namespace

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini() {
  const auto version = score::pm::fi::find_host_library(__builtin_return_address(0));
  if (version == 0) return nullptr;
  provider.fi_version = version;
  return &provider;
}

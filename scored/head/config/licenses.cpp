// This file is tested by partitions_test.cpp.
#include "scored/head/config/licenses.hpp"

#include "base/limits.hpp"
#include "base/text/hostlist.hpp"

namespace score::head {

LicenseRules read_licenses(ConfigSection& root) {
  LicenseRules out;
  ConfigSection section = root.section("licenses");
  section.read("release_suspended", out.release_suspended);
  for (const std::string& name : section.keys()) {
    if (name == "release_suspended") continue;
    base::License one{name, 0};
    if (!is_host_name(name)) section.refuse(name, "license names have letters, digits, '-' only");
    section.read(name, one.count, 1U, limits::kMaxLicenses);
    out.totals.push_back(std::move(one));
    if (out.totals.size() == limits::kMaxLicenseKinds + 1) {
      section.refuse(name, fmt::format("more than {} licenses", limits::kMaxLicenseKinds));
    }
  }
  return out;
}

}  // namespace score::head

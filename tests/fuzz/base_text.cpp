// This fuzz target runs the small parsers of text that users and files contain. The first byte
// selects one. An accepted text must keep the parser's promises: limits hold, and printed values
// can be parsed again.

#include "base/limits.hpp"
#include "base/model/resources.hpp"
#include "base/os/cgroup.hpp"
#include "base/os/host_facts.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/index_set.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>

namespace {

using namespace score;  // NOLINT(google-build-using-namespace)

void require(bool promise) {
  if (!promise) std::abort();
}

void try_hostlist(std::string_view text) {
  const auto names = expand_hostlist(text, 1000);
  if (!names) return;
  require(names->size() <= 1000);
  for (const auto& name : *names) require(is_host_name(name));
  const auto again = expand_hostlist(compress_hostlist(*names), 1000);
  require(again && std::set<std::string>(again->begin(), again->end()) ==
                       std::set<std::string>(names->begin(), names->end()));
  require(expand_hostlist(compress_in_order(*names), 1000).value() == *names);
}

void try_index_set(std::string_view text) {
  const auto set = IndexSet::parse(text, 1000);
  if (!set) return;
  require(set->size() <= 1000 && !set->empty());
  require(IndexSet::parse(set->text(), 1000) == *set);
  require(set->without(*set).empty());
}

void try_duration(std::string_view text) {
  const auto duration = parse_duration(text, BareNumber::Minutes);
  if (!duration) return;
  require(*duration >= Duration::zero());
  require(parse_duration(format_duration(*duration)) == *duration);
}

void try_bytes(std::string_view text) {
  const auto bytes = parse_bytes(text);
  if (bytes) require(parse_bytes(format_bytes(*bytes)) == *bytes);
}

void try_constraint(std::string_view text) {
  const auto features = parse_constraint(text);
  if (!features) return;
  require(!features->empty() && features->size() <= limits::kMaxFeatures);
  require(parse_constraint(format_constraint(*features)) == *features);
  require(!has_features({}, *features));
}

void try_generic(std::string_view text) {
  const auto generic = parse_generic(text);
  if (!generic) return;
  require(!generic->empty() && generic->size() <= limits::kMaxGenericKinds);
  for (const auto& one : *generic) {
    require(one.count >= 1 && one.count <= limits::kMaxGenericCount && is_host_name(one.name));
  }
  require(parse_generic(format_generic(*generic)) == *generic);
}

void try_escape(std::string_view text) {
  for (const auto& shown : {escape_terminal(text, 64), quote_value(text, 64)}) {
    require(shown.size() <= 64);
    for (const char c : shown) require(static_cast<std::uint8_t>(c) >= 0x20 && c != 0x7f);
  }
}

void try_kernel_files(std::string_view text) {
  const auto mount = parse_cgroup2_mount(text);
  if (mount) require((*mount)[0] == '/');
  std::ignore = parse_cgroup2_path(text);
  std::ignore = parse_cgroup_events(text);
  std::ignore = parse_meminfo(text, "MemTotal");
  std::ignore = RequestId::parse(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'h':
      try_hostlist(text);
      break;
    case 'i':
      try_index_set(text);
      break;
    case 'd':
      try_duration(text);
      break;
    case 'b':
      try_bytes(text);
      break;
    case 'c':
      try_constraint(text);
      break;
    case 'g':
      try_generic(text);
      break;
    case 'e':
      try_escape(text);
      break;
    default:
      try_kernel_files(text);
  }
  return 0;
}

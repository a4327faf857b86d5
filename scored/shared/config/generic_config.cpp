#include "scored/shared/config/generic_config.hpp"

#include "base/limits.hpp"
#include "base/text/hostlist.hpp"

#include <algorithm>

namespace score {

namespace {

// Returns what is wrong with the files of a kind; empty if nothing is.
std::string fault_of(const std::vector<std::string>& files, std::uint32_t count) {
  if (!files.empty() && files.size() != count) {
    return fmt::format("{} files for {} units: one per unit", files.size(), count);
  }
  for (const std::string& file : files) {
    if (file.starts_with('/')) continue;
    return fmt::format("'{}' is not an absolute path", escape_terminal(file, 80));
  }
  return {};
}

GenericConfig read_kind(const std::string& name, ConfigSection& section) {
  GenericConfig kind;
  kind.resource.name = name;
  section.read("files", kind.files);
  kind.resource.count = static_cast<std::uint32_t>(kind.files.size());
  if (!section.has("count") && kind.files.empty()) section.refuse("count", "missing");
  section.read("count", kind.resource.count, 1U, limits::kMaxGenericCount);
  section.read("shared", kind.resource.shared);
  section.read("memory", kind.resource.memory);
  const std::string fault = fault_of(kind.files, kind.resource.count);
  if (!fault.empty()) section.refuse("files", fault);
  if (!is_host_name(name)) section.refuse("count", "the name of the resource is not a word");
  return kind;
}

}  // namespace

std::vector<GenericConfig> read_generic_config(ConfigSection& root) {
  std::vector<GenericConfig> kinds;
  std::size_t files = 0;
  for (auto& [name, section] : root.named_sections("gres")) {
    kinds.push_back(read_kind(name, section));
    files += kinds.back().files.size();
    if (kinds.size() > limits::kMaxGenericKinds) {
      section.refuse("count", fmt::format("more than {} kinds", limits::kMaxGenericKinds));
    }
    if (files > kMaxDeviceFiles) {
      section.refuse("files", fmt::format("more than {} device files on a node", kMaxDeviceFiles));
    }
  }
  return kinds;
}

}  // namespace score

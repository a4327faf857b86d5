#include "scored/shared/config/pario_config.hpp"

#include "base/text.hpp"

namespace score {

ParioConfig read_pario_config(ConfigSection& root) {
  ParioConfig pario;
  ConfigSection section = root.section("pario");
  std::string capacity;
  section.read("path", pario.path);
  section.read("capacity", capacity);
  if (!pario.path.empty() && !pario.path.starts_with('/')) {
    section.refuse("path", "must be an absolute path");
  }
  if (section.has("capacity")) {
    pario.capacity = parse_bytes(capacity).value_or(Bytes(0));
    if (pario.capacity == Bytes(0)) {
      section.refuse("capacity", "must be a size, such as \"16G\"");
    }
    if (pario.path.empty()) section.refuse("capacity", "needs path");
  } else if (!pario.path.empty()) {
    section.refuse("path", "needs capacity, such as \"500G\"");
  }
  return pario;
}

}  // namespace score

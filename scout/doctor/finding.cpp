#include "scout/doctor/finding.hpp"

#include "base/text/hostlist.hpp"

#include <algorithm>

namespace score::scout {

std::string_view level_word(Level level) {
  switch (level) {
    case Level::Ok:
      return "ok";
    case Level::Skipped:
      return "skipped";
    case Level::Warning:
      return "warning";
    case Level::Fault:
      return "fault";
  }
  return "";
}

std::string Finding::line() const {
  std::string line = nodes.empty() ? text : compress_hostlist(nodes) + ": " + text;
  if (!remedy.empty()) line += ": " + remedy;
  return line;
}

void Findings::add(Level level, const std::string& node, std::string text, std::string remedy) {
  const auto same = std::ranges::find_if(all_, [&](const Finding& one) {
    return one.level == level && one.nodes.empty() == node.empty() && one.text == text &&
           one.remedy == remedy;
  });
  if (same != all_.end()) {
    if (!node.empty()) same->nodes.push_back(node);
    return;
  }
  Finding finding{level, {}, {}, std::move(text), std::move(remedy)};
  if (!node.empty()) finding.nodes.push_back(node);
  all_.push_back(std::move(finding));
}

}  // namespace score::scout

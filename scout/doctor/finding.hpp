// Defines the result of a check.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

enum class Level : std::uint8_t { Ok, Skipped, Warning, Fault };

std::string_view level_word(Level level);  // "ok", "skipped", "warning", "fault"

struct Finding {
  Level level = Level::Ok;
  std::string check;
  std::vector<std::string> nodes;  // affected nodes; empty: the head, or the whole cluster
  std::string text;                // the fact
  std::string remedy;              // the remedy; empty if nothing is wrong

  // Returns "node[00-03]: TEXT: REMEDY".
  [[nodiscard]] std::string line() const;
};

// Collects the findings of one check. Equal texts for several nodes become one finding.
class Findings {
 public:
  void add(Level level, const std::string& node, std::string text, std::string remedy);

  void warn(const std::string& node, std::string text, std::string remedy) {
    add(Level::Warning, node, std::move(text), std::move(remedy));
  }

  void fault(const std::string& node, std::string text, std::string remedy) {
    add(Level::Fault, node, std::move(text), std::move(remedy));
  }

  void skip(std::string text) { add(Level::Skipped, "", std::move(text), ""); }

  // Adds the text with level Ok if there are no other findings.
  void else_ok(std::string text) {
    if (all_.empty()) add(Level::Ok, "", std::move(text), "");
  }

  [[nodiscard]] const std::vector<Finding>& all() const { return all_; }

 private:
  std::vector<Finding> all_;
};

}  // namespace score::scout

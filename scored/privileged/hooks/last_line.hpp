// LastLine keeps the last line that is not blank of any amount of output, in bounded memory. It is
// pure.
#pragma once

#include <string>
#include <string_view>

namespace score::hooks {

class LastLine {
 public:
  static constexpr std::size_t kMostBytes = 400;

  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      if (byte == '\n' || byte == '\r') {
        end_line();
      } else if (current_.size() < kMostBytes) {
        current_ += byte;
      }
    }
  }

  // Returns the line; an unfinished one counts.
  [[nodiscard]] std::string text() const { return is_blank(current_) ? last_ : current_; }

 private:
  static bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t") == std::string_view::npos;
  }

  void end_line() {
    if (!is_blank(current_)) last_ = current_;
    current_.clear();
  }

  std::string last_;
  std::string current_;
};

}  // namespace score::hooks

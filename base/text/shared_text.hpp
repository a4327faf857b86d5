#pragma once
// A SharedText is an immutable string that many objects share, so that equal texts are in memory
// once. It is free of Asio and fmt.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace score::inline base {

// Copies share the text; an empty text takes no memory. Copies may be used on other threads.
class SharedText {
 public:
  SharedText() = default;

  SharedText(std::string text)  // implicit: it converts to std::string wherever it is read
      : text_(text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text))) {}

  SharedText(const char* text) : SharedText(std::string(text)) {}

  operator const std::string&() const { return str(); }

  operator std::string_view() const { return str(); }

  [[nodiscard]] const std::string& str() const { return text_ ? *text_ : none(); }

  [[nodiscard]] bool empty() const { return text_ == nullptr; }

  [[nodiscard]] bool is_shared() const { return text_.use_count() > 1; }

  friend bool operator==(const SharedText& a, const SharedText& b) {
    return a.text_ == b.text_ || a.str() == b.str();
  }

  friend bool operator==(const SharedText& a, const std::string& b) { return a.str() == b; }

  friend bool operator==(const SharedText& a, const char* b) { return a.str() == b; }

 private:
  static const std::string& none() {
    static const std::string empty;
    return empty;
  }

  std::shared_ptr<const std::string> text_;
};

// A TextPool finds equal texts. It holds each text as long as someone else does, and some texts a
// little longer.
class TextPool {
 public:
  // Returns the pool's own text if it has an equal one.
  [[nodiscard]] SharedText share(const SharedText& text);

  [[nodiscard]] std::size_t size() const { return texts_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const SharedText& text) const {
      return std::hash<std::string>{}(text.str());
    }
  };

  static constexpr std::size_t kLeastKept = 64;

  std::unordered_set<SharedText, Hash> texts_;
  std::size_t sweep_at_ = kLeastKept;
};

}  // namespace score::inline base

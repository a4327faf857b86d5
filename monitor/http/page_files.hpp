#pragma once
// The files of the dashboard, read once: they are part of the installation and do not change.

#include "base/result.hpp"

#include <map>
#include <string>
#include <string_view>

namespace score::monitor {

struct PageFile {
  std::string bytes;
  std::string type;  // of the header
  std::string etag;  // with its quotes
};

class PageFiles {
 public:
  static constexpr std::size_t kMaxFiles = 256;
  static constexpr std::size_t kMaxBytes = 16U << 20U;  // in all

  // Everything below the directory; "" or a missing one: a page that says so. Symbolic
  // links and special files are left out. Errors: TooLarge, errno codes.
  [[nodiscard]] static Result<PageFiles> load(const std::string& directory);

  // nullptr: no such file. "/" is index.html. `path` is a clean one (url.hpp).
  [[nodiscard]] const PageFile* find(std::string_view path) const;

 private:
  void add(std::string path, std::string bytes);

  std::map<std::string, PageFile, std::less<>> files_;
};

}  // namespace score::monitor

#pragma once
// PageFiles holds the files of the dashboard. They are read once, because they are part of the
// installation and do not change.

#include "base/result.hpp"

#include <map>
#include <string>
#include <string_view>

namespace score::monitor {

struct PageFile {
  std::string bytes;
  std::string type;  // of the Content-Type header
  std::string etag;  // with its quotes
};

class PageFiles {
 public:
  static constexpr std::size_t kMaxFiles = 256;
  static constexpr std::size_t kMaxBytes = 16U << 20U;  // in total

  // Loads everything below the directory. For "" or a missing directory it makes a page that says
  // so. Symbolic links and special files are left out. Errors: TooLarge, errno codes.
  [[nodiscard]] static Result<PageFiles> load(const std::string& directory);

  // Returns nullptr if there is no such file. "/" is index.html. `path` must be clean (url.hpp).
  [[nodiscard]] const PageFile* find(std::string_view path) const;

 private:
  void add(std::string path, std::string bytes);

  std::map<std::string, PageFile, std::less<>> files_;
};

}  // namespace score::monitor

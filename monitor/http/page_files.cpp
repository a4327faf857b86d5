#include "monitor/http/page_files.hpp"

#include "base/os/fd.hpp"
#include "base/text/fnv1a.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <utility>

namespace score::monitor {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNoPage =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>scored</title>"
    "<h1>scored</h1><p>The dashboard's page was not built, because esbuild was missing. "
    "In the source tree, <code>./try build</code> installs it and builds the page. The data is at "
    "<a href=\"/api/v1/snapshot\">/api/v1/snapshot</a>, <code>/api/v1/stream</code> and "
    "<a href=\"/metrics\">/metrics</a>.</p></html>\n";

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".json", "application/json"},
    {".woff2", "font/woff2"},
    {".txt", "text/plain; charset=utf-8"},
    {".map", "application/json"},
    {".webmanifest", "application/manifest+json"},
};

std::string_view type_of(std::string_view path) {
  for (const auto& [ending, type] : kTypes) {
    if (path.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

// The tag only shows that a file has changed.
std::string etag_of(std::string_view bytes) {
  return fmt::format("\"{:016x}-{}\"", base::fnv1a(bytes), bytes.size());
}

}  // namespace

void PageFiles::add(std::string path, std::string bytes) {
  PageFile file;
  file.type = type_of(path);
  file.etag = etag_of(bytes);
  file.bytes = std::move(bytes);
  files_[std::move(path)] = std::move(file);
}

Result<PageFiles> PageFiles::load(const std::string& directory) {
  PageFiles files;
  std::error_code failed;
  std::size_t left = kMaxBytes;
  std::error_code absent;
  if (!directory.empty() && fs::is_directory(directory, absent)) {
    for (const auto& entry : fs::recursive_directory_iterator(directory, failed)) {
      if (entry.is_symlink(failed) || !entry.is_regular_file(failed)) continue;
      auto bytes = read_file(entry.path(), left);
      if (!bytes) return bytes.error();
      left -= bytes->size();
      if (files.files_.size() >= kMaxFiles) return fail(Errc::TooLarge, "{}", directory);
      files.add("/" + entry.path().lexically_relative(directory).string(), *std::move(bytes));
    }
  }
  if (failed) return fail(failed, "cannot read {}", directory);
  if (!files.files_.contains("/index.html")) files.add("/index.html", std::string(kNoPage));
  return files;
}

const PageFile* PageFiles::find(std::string_view path) const {
  const auto found = files_.find(path == "/" ? "/index.html" : path);
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace score::monitor

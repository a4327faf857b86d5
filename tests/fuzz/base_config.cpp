// This fuzz target parses configuration files. Any bytes must give values or one error, and an
// error must name the file.

#include "base/config/config.hpp"
#include "base/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace score;  // NOLINT(google-build-using-namespace)

// Reads one value of each type, at the root and below.
void read_all_types(ConfigSection section) {
  bool flag = false;
  std::string text;
  std::vector<std::string> texts;
  double number = 0;
  std::uint32_t count = 0;
  Duration duration{};
  Bytes bytes;
  section.read("flag", flag);
  section.read("text", text);
  section.read("texts", texts);
  section.read("number", number, 0.0, 1.0);
  section.read("count", count, 1U, 64U);
  section.read("duration", duration, limits::kMinQuantum, limits::kMaxQuantum);
  section.read("bytes", bytes, 1_KiB, 1_GiB);
  section.read_choice("choice", count, {{"one", 1U}, {"two", 2U}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = ConfigFile::parse(text, "fuzz.toml");
  if (!file) {
    if (!file.error().context().starts_with("fuzz.toml")) std::abort();
    return 0;
  }
  ConfigSection root = file->root();
  read_all_types(root);
  read_all_types(root.section("table"));
  for (const ConfigSection& item : root.sections("list")) read_all_types(item);
  for (const auto& [name, item] : root.named_sections("named")) read_all_types(item);
  const auto status = file->finish();
  if (!status && !status.error().context().starts_with("fuzz.toml:")) std::abort();
  return 0;
}

#include "base/text.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace score::inline base {

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto lead = byte(0);
  std::size_t length = 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if ((lead & 0xF0U) == 0xE0) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
  const bool beyond = lead == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

namespace {

// Control characters are C0, DEL, and C1 written as UTF-8, because a terminal may act on any of
// them.
bool is_control(std::string_view sequence) {
  const auto lead = static_cast<std::uint8_t>(sequence[0]);
  if (lead < 0x20 || lead == 0x7F) return true;
  return lead == 0xC2 && static_cast<std::uint8_t>(sequence[1]) < 0xA0;
}

std::uint32_t code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(sequence[i]); };
  if (sequence.size() == 1) return byte(0);
  std::uint32_t point = byte(0) & (0x7FU >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); ++i) point = point << 6U | (byte(i) & 0x3FU);
  return point;
}

// Format characters reorder, break or hide the text around them (Unicode 15: Bidi_Control, line and
// paragraph separators, invisible format characters, tags). The joiners U+200C and U+200D are
// allowed, because Persian and Indic scripts need them.
bool is_format(std::string_view sequence) {
  struct Range {
    std::uint32_t first, last;
  };

  constexpr auto kRanges = std::to_array<Range>({{0x00AD, 0x00AD},
                                                 {0x061C, 0x061C},
                                                 {0x180E, 0x180E},
                                                 {0x200B, 0x200B},
                                                 {0x200E, 0x200F},
                                                 {0x2028, 0x202E},
                                                 {0x2060, 0x206F},
                                                 {0xFEFF, 0xFEFF},
                                                 {0xFFF9, 0xFFFB},
                                                 {0xE0000, 0xE007F}});
  const std::uint32_t point = code_point(sequence);
  return std::ranges::any_of(
      kRanges, [point](const Range& range) { return point >= range.first && point <= range.last; });
}

void append_escaped(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(c));
    }
  }
}

// Appends `text` in printable form. Characters of `also_escaped` get a backslash. If `out` would
// exceed max_bytes, it is cut between characters and ends in "...".
void append_printable(std::string& out, std::string_view text, std::string_view also_escaped,
                      std::size_t max_bytes) {
  constexpr std::string_view kCut = "...";
  std::size_t cut_at = out.size();
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto sequence = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(sequence.size());
    if (length == 0 || is_control(sequence) || is_format(sequence)) {
      append_escaped(out, sequence);
    } else {
      if (also_escaped.find(sequence[0]) != also_escaped.npos) out += '\\';
      out += sequence;
    }
    if (out.size() + kCut.size() <= max_bytes) cut_at = out.size();
    if (out.size() > max_bytes) {
      out.resize(cut_at);
      out += kCut;
      return;
    }
  }
}

bool is_plain(char c) {
  constexpr std::string_view kPlain = "_-+./:,@%[]<>()#*~^!?$&;|{}";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kPlain.find(c) != kPlain.npos;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string last_line(std::string_view text) {
  text = trim(text);
  return escape_terminal(trim(text.substr(text.rfind('\n') + 1)), 500);
}

std::string escape_terminal(std::string_view text, std::size_t max_bytes) {
  std::string out;
  append_printable(out, text, "", max_bytes);
  return out;
}

std::string quote_value(std::string_view text, std::size_t max_bytes) {
  if (!text.empty() && text.size() <= max_bytes && std::ranges::all_of(text, is_plain)) {
    return std::string(text);
  }
  std::string out = "\"";
  append_printable(out, text, "\"\\", max_bytes - 1);
  out += '"';
  return out;
}

}  // namespace score::inline base

// This file is tested by test_sctop.py.
#include "monitor/sctop/curses_screen.hpp"

#include "base/errc.hpp"

#include <ncurses.h>

#include <array>
#include <clocale>
#include <cstdio>
#include <unistd.h>

namespace score::sctop {

namespace {

constexpr std::array<short, 6> kJobColours{COLOR_YELLOW,  COLOR_CYAN, COLOR_GREEN,
                                           COLOR_MAGENTA, COLOR_BLUE, COLOR_WHITE};
constexpr short kBadPair = kJobColours.size() + 1;

int attributes_of(const StyledText& span) {
  switch (span.style) {
    case Style::Strong:
      return A_BOLD;
    case Style::Faint:
      return A_DIM;
    case Style::Reverse:
      return A_REVERSE;
    case Style::Bad:
      return has_colors() ? COLOR_PAIR(kBadPair) | A_BOLD : A_BOLD;
    case Style::Job: {
      const auto pair = static_cast<int>(static_cast<std::uint64_t>(span.job) % kJobColours.size());
      return has_colors() ? COLOR_PAIR(pair + 1) : A_NORMAL;
    }
    case Style::Plain:
      break;
  }
  return A_NORMAL;
}

void start_colours() {
  if (!has_colors()) return;
  start_color();
  use_default_colors();
  for (std::size_t i = 0; i < kJobColours.size(); ++i) {
    init_pair(static_cast<short>(i + 1), kJobColours[i], -1);
  }
  init_pair(kBadPair, COLOR_RED, -1);
}

std::optional<KeyCode> special_key(int code) {
  switch (code) {
    case KEY_UP:
      return KeyCode::Up;
    case KEY_DOWN:
      return KeyCode::Down;
    case KEY_PPAGE:
      return KeyCode::PageUp;
    case KEY_NPAGE:
      return KeyCode::PageDown;
    case KEY_HOME:
      return KeyCode::Home;
    case KEY_END:
      return KeyCode::End;
    case '\n':
    case KEY_ENTER:
      return KeyCode::Enter;
    case '\x1b':
      return KeyCode::Escape;
    case KEY_BACKSPACE:
    case '\x7f':
      return KeyCode::Backspace;
    case KEY_F(1):
      return KeyCode::F1;
    case KEY_F(3):
    case KEY_F(4):
      return KeyCode::F3;
    case KEY_F(6):
      return KeyCode::F6;
    case KEY_F(9):
      return KeyCode::F9;
    case KEY_F(10):
      return KeyCode::F10;
    default:
      return std::nullopt;
  }
}

}  // namespace

Status CursesScreen::open() {
  std::setlocale(LC_ALL, "");
  if (isatty(STDOUT_FILENO) == 0) {
    return fail(Errc::NotFound, "no terminal: use --once for scripts");
  }
  if (newterm(nullptr, stdout, stdin) == nullptr) return fail(Errc::NotFound, "unknown terminal");
  return {};
}

CursesScreen::CursesScreen() {
  cbreak();
  noecho();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  set_escdelay(25);
  curs_set(0);
  start_colours();
}

CursesScreen::~CursesScreen() {
  endwin();
}

ScreenSize CursesScreen::size() const {
  return {static_cast<std::size_t>(std::max(LINES, 1)),
          static_cast<std::size_t>(std::max(COLS, 1))};
}

void CursesScreen::show(const std::vector<StyledLine>& lines) {
  erase();
  for (std::size_t row = 0; row < lines.size(); ++row) {
    ::move(static_cast<int>(row), 0);
    for (const auto& span : lines[row]) {
      attrset(attributes_of(span));
      addstr(span.text.c_str());
    }
  }
  attrset(A_NORMAL);
  refresh();
}

std::optional<KeyPress> CursesScreen::next_key() {
  const int code = getch();
  if (code == ERR) return std::nullopt;
  if (const auto key = special_key(code)) return KeyPress{*key, 0};
  if (code >= ' ' && code < 0x7f) return KeyPress{KeyCode::Text, static_cast<char>(code)};
  return KeyPress{KeyCode::Text, 0};
}

}  // namespace score::sctop

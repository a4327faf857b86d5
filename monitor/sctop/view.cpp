#include "monitor/sctop/view.hpp"

#include "base/text.hpp"
#include "base/units.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace score::sctop {

namespace {

constexpr std::size_t kMaxText = 64;
constexpr std::size_t kMaxWait = 120;
constexpr std::size_t kMostWaits = 8;  // lines of the selected job
constexpr std::size_t kMatrixLines = 6;
constexpr std::size_t kNodeNameColumns = 10;
constexpr std::size_t kWideColumns = 100;

std::string shown(const std::string& text) {
  return escape_terminal(text, kMaxText);
}

std::string micros(double seconds) {
  const double us = seconds * 1e6;
  if (us >= 1e4) return fmt::format("{:.0f} ms", us / 1e3);
  if (us >= 1e3) return fmt::format("{:.1f} ms", us / 1e3);
  return fmt::format("{:.0f} us", us);
}

std::string size_text(double bytes) {
  return human_bytes(Bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, 1e18))));
}

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string percentiles_text(const char* name, const std::optional<Percentiles>& values) {
  if (!values) return fmt::format("{} -", name);
  return fmt::format("{} p50 {} p95 {} max {}", name, micros(values->p50_s), micros(values->p95_s),
                     micros(values->max_s));
}

// Returns "overhead 0.024 %: wake 0.020, stop 0.001, network 0.000, go 0.003".
std::string overhead_text(const Model& model) {
  if (!model.overhead) return "overhead -";
  std::string text = fmt::format("overhead {:.3f} %", *model.overhead * 100);
  const char* separator = ": ";
  for (const auto& [name, share] : model.overhead_parts) {
    text += fmt::format("{}{} {:.3f}", std::exchange(separator, ", "), shown(name), share * 100);
  }
  return text;
}

void add_header(std::vector<StyledLine>& out, const Model& model, const ViewState& view,
                ScreenSize size) {
  const bool is_narrow = size.columns < kWideColumns;  // then figures matter more than names
  const auto turns = fmt::format("  {}{:.0f} ms  slots {}", is_narrow ? "" : "quantum ",
                                 model.quantum_s * 1e3, model.slots);
  out.push_back({{"sctop ", Style::Strong},
                 {shown(model.cluster), Style::Strong},
                 {!view.trouble.empty() ? "  " + shown(view.trouble)
                  : view.paused         ? "  PAUSED"
                  : view.silent_s > 0   ? fmt::format("  NO ANSWER FOR {} s", view.silent_s)
                                        : std::string(),
                  Style::Bad},
                 {model.is_virtual && !is_narrow ? " (virtual nodes)" : ""},
                 {fmt::format("{}  nodes {}/{}  {:.1f} switches/s", turns, model.nodes_up,
                              model.nodes_known, model.switches_per_s)}});
  out.push_back(
      {{percentiles_text("switch", model.total) + "   " + percentiles_text("skew", model.skew)},
       {model.late > 0 ? fmt::format("   late {}", model.late) : "", Style::Bad}});
  out.push_back({{overhead_text(model)}});
  const ScratchView& scratch = model.scratch;
  if (scratch.servers == 0) return;
  out.push_back(
      {{fmt::format("scratch used {} of {}   written {}/s   read {}/s   queue {}",
                    size_text(scratch.used), size_text(scratch.reserved),
                    size_text(scratch.written), size_text(scratch.read), scratch.queue)},
       {scratch.down > 0 ? fmt::format("   {} servers down", scratch.down) : "", Style::Bad}});
}

// Returns "7", or "7,8" if cores of the node run a different job in the same slot; "7+" if that is
// too wide.
std::string numbers_of(const std::vector<std::int64_t>& jobs, std::size_t width) {
  std::string all;
  for (const auto job : jobs) all += (all.empty() ? "" : ",") + std::to_string(job);
  if (all.size() <= width) return all;
  const auto text = std::to_string(jobs.front()) + (jobs.size() > 1 ? "+" : "");
  return text.size() > width ? text.substr(text.size() - width) : text;
}

StyledText cell_of(const NodeView& node, const std::vector<std::int64_t>* jobs, std::size_t width) {
  const bool is_up = node.state == "up" && !node.drained;
  if (!is_up) return {std::string(width, 'x'), Style::Bad};
  if (jobs == nullptr || jobs->empty()) return {std::string(width, '.'), Style::Faint};
  return {fmt::format("{:^{}}", numbers_of(*jobs, width), width), Style::Job, jobs->front()};
}

void add_matrix(std::vector<StyledLine>& out, const Model& model, ScreenSize size) {
  const auto nodes = std::max<std::size_t>(model.nodes.size(), 1);
  const std::size_t room = size.columns > 8 ? size.columns - 8 : 1;
  const std::size_t width = std::clamp<std::size_t>(room / nodes, 1, 6);
  std::size_t shown_rows = 0;
  for (const auto& row : model.rows) {
    if (shown_rows++ == kMatrixLines) break;
    StyledLine line{{fmt::format("{} slot {:<2}", row.active ? ">" : " ", row.slot).substr(0, 8),
                     row.active ? Style::Strong : Style::Plain}};
    for (std::size_t node = 0; node < model.nodes.size() && (node + 1) * width <= room; ++node) {
      line.push_back(
          cell_of(model.nodes[node], node < row.cells.size() ? &row.cells[node] : nullptr, width));
    }
    out.push_back(std::move(line));
  }
  if (model.rows.empty()) out.push_back({{"  no slot is in use", Style::Faint}});
}

// Returns "user|||sys///filled+++waiting for a processor...pm~~~" in `width` characters.
std::vector<StyledText> bar(const ProcessView& process, std::size_t width) {
  const auto part = [&](double share) {
    return static_cast<std::size_t>(
        std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
  };
  auto left = width;
  const auto take = [&](double share) {
    const auto taken = std::min(part(share), left);
    left -= taken;
    return taken;
  };
  const bool has_turn = process.state != "frozen" && process.state != "fill";
  const auto plain = has_turn ? Style::Plain : Style::Faint;
  std::vector<StyledText> spans{
      {"[", Style::Faint},
      {std::string(take(process.user), '|'), has_turn ? Style::Job : Style::Faint, process.job},
      {std::string(take(process.system), '/'), plain},
      {std::string(take(process.filled), '+'), Style::Faint},
      {std::string(take(process.waited), '.'), plain},
      {std::string(take(process.pm), '~'), Style::Faint}};
  spans.push_back({std::string(left, ' ') + "]", Style::Faint});
  return spans;
}

void add_loads(std::vector<StyledLine>& out, const Model& model, const ViewState& view,
               ScreenSize size, std::size_t most) {
  std::vector<std::vector<const ProcessView*>> by_node(model.nodes.size());
  for (const auto& process : model.processes) {
    const auto node = static_cast<std::size_t>(process.node);
    if (node < by_node.size()) by_node[node].push_back(&process);
  }
  for (std::size_t node = view.first_node; node < by_node.size() && most > 0; ++node) {
    const auto& processes = by_node[node];
    if (processes.empty()) continue;
    --most;
    StyledLine line{{fmt::format("{:<{}}", shown(model.nodes[node].name), kNodeNameColumns)
                         .substr(0, kNodeNameColumns)}};
    const auto room = size.columns > kNodeNameColumns ? size.columns - kNodeNameColumns : 0;
    const auto width = std::clamp<std::size_t>(room / processes.size(), 4, 24) - 2;
    for (std::size_t i = 0; i < processes.size() && (i + 1) * (width + 2) <= room; ++i) {
      std::ranges::move(bar(*processes[i], width), std::back_inserter(line));
    }
    out.push_back(std::move(line));
  }
}

StyledLine job_line(const JobView& job, bool is_chosen) {
  const auto slot = job.slot ? std::to_string(*job.slot) : std::string("-");
  const auto text =
      fmt::format(" {:<10.10} {:<14.14} {:>5} {:>6} {:>4} {:<13.13} {:>4.0f}% {:>9} {:>9} {:>9} {}",
                  shown(job.user), shown(job.name), job.nodes, job.tasks, slot, job.state,
                  job.share * 100, clock_text(job.scheduled_s), clock_text(job.elapsed_s),
                  clock_text(job.filled_s), shown(job.reason));
  auto style = job.is_final ? Style::Faint : Style::Plain;
  if (is_chosen) style = Style::Reverse;
  return {{fmt::format("{:>6}", job.job), Style::Job, job.job}, {text, style}};
}

std::size_t chosen_of(const std::vector<JobView>& jobs, const ViewState& view) {
  return jobs.empty() ? 0 : std::min(view.chosen, jobs.size() - 1);
}

// Counts the lines of the list of jobs. The waits of the selected job's ranks stand below it.
std::size_t lines_of_jobs(const std::vector<JobView>& jobs, const ViewState& view) {
  if (jobs.empty()) return 1;
  return 1 + jobs.size() + std::min(jobs[chosen_of(jobs, view)].waits.size(), kMostWaits);
}

void add_jobs(std::vector<StyledLine>& out, const Model& model, const ViewState& view,
              std::size_t most) {
  constexpr const char* kHead =
      "   job user       name           nodes  tasks slot state         share scheduled   elapsed "
      "   filled reason";
  out.push_back({{kHead, Style::Reverse}});
  const auto jobs = listed_jobs(model, view);
  if (most > 0) --most;
  const auto chosen = chosen_of(jobs, view);
  const auto waits = std::min(lines_of_jobs(jobs, view) - 1 - jobs.size(), most / 2);
  most -= waits;
  const auto first = chosen >= most && most > 0 ? chosen - most + 1 : 0;
  for (auto i = first; i < jobs.size() && i - first < most; ++i) {
    out.push_back(job_line(jobs[i], i == chosen));
    for (std::size_t wait = 0; i == chosen && wait < waits; ++wait) {
      out.push_back({{"       " + escape_terminal(jobs[i].waits[wait], kMaxWait), Style::Faint}});
    }
  }
}

StyledLine key_line(const ViewState& view) {
  if (view.asks_cancel != 0) {
    return {{fmt::format("Cancel job {}? y or n", view.asks_cancel), Style::Strong}};
  }
  if (view.types_filter) return {{"Filter: " + shown(view.filter) + "_", Style::Strong}};
  return {{"F1", Style::Strong},
          {"Help "},
          {"F3", Style::Strong},
          {"Filter "},
          {"F6", Style::Strong},
          {"Sort "},
          {"F9", Style::Strong},
          {"Cancel "},
          {"F10", Style::Strong},
          {"Quit  "},
          {view.filter.empty() ? "" : "filter " + shown(view.filter), Style::Faint}};
}

std::vector<StyledLine> help() {
  std::vector<StyledLine> lines{{{"sctop: the cluster live", Style::Strong}}};
  for (const char* text :
       {"", "matrix: a row a slot, > is the one that runs; a column a node; the job's number",
        "        '.' idle, 'x' down or drained",
        "bars:   of scheduled time: | user  / system  . waiting for a processor  ~ waiting in PM;",
        "        + used at idle priority in other jobs' slices; faint: frozen or filling now",
        "jobs:   below the chosen one, if it is idle or deadlocked, what its ranks wait for", "",
        "Up Down PgUp PgDn Home End   choose a job",
        "[ ]                          scroll the nodes",
        "/ F3    filter jobs           < > F6  sort by the next column    I  invert",
        "F9 k    cancel the chosen job (own jobs; operators any)",
        "p       pause                 q F10   quit", "", "any key goes back"}) {
    lines.push_back({{text}});
  }
  return lines;
}

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

// Cuts a line to the screen's width. Only ASCII text is cut inside; other text is kept or dropped
// as a whole.
void cut(StyledLine& line, std::size_t columns) {
  std::size_t used = 0;
  for (auto& span : line) {
    const auto width = width_of(span.text);
    if (used + width > columns) {
      const bool is_ascii = width == span.text.size();
      span.text = is_ascii ? span.text.substr(0, columns - used) : "";
    }
    used += width_of(span.text);
  }
  std::erase_if(line, [](const StyledText& span) { return span.text.empty(); });
}

bool matches(const JobView& job, const std::string& filter) {
  return filter.empty() || std::to_string(job.job).find(filter) != std::string::npos ||
         job.user.find(filter) != std::string::npos || job.name.find(filter) != std::string::npos ||
         job.state.find(filter) != std::string::npos;
}

bool is_before(const JobView& a, const JobView& b, SortBy sort) {
  switch (sort) {
    case SortBy::User:
      return std::tie(a.user, a.job) < std::tie(b.user, b.job);
    case SortBy::Share:
      return std::tie(a.share, a.job) < std::tie(b.share, b.job);
    case SortBy::Scheduled:
      return std::tie(a.scheduled_s, a.job) < std::tie(b.scheduled_s, b.job);
    case SortBy::Elapsed:
      return std::tie(a.elapsed_s, a.job) < std::tie(b.elapsed_s, b.job);
    case SortBy::State:
      return std::tie(a.state, a.job) < std::tie(b.state, b.job);
    case SortBy::Job:
      break;
  }
  return a.job < b.job;
}

void press_in_filter(ViewState& view, const KeyPress& press) {
  if (press.key == KeyCode::Text && press.text >= ' ') view.filter += press.text;
  if (press.key == KeyCode::Backspace && !view.filter.empty()) view.filter.pop_back();
  if (press.key == KeyCode::Escape) view.filter.clear();
  if (press.key == KeyCode::Enter || press.key == KeyCode::Escape) view.types_filter = false;
  view.chosen = 0;
}

void sort_by_next(ViewState& view, int step) {
  constexpr int kColumns = 6;
  view.sort = static_cast<SortBy>((static_cast<int>(view.sort) + kColumns + step) % kColumns);
}

void move(ViewState& view, std::ptrdiff_t by, std::size_t count) {
  const auto last = count == 0 ? 0 : static_cast<std::ptrdiff_t>(count) - 1;
  const auto to = static_cast<std::ptrdiff_t>(std::min(view.chosen, count)) + by;
  view.chosen = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(to, 0, last));
}

// Returns the key for a letter that stands for a different key, as in htop.
KeyCode key_of(const KeyPress& press) {
  if (press.key != KeyCode::Text) return press.key;
  switch (press.text) {
    case 'h':
    case '?':
      return KeyCode::F1;
    case '/':
      return KeyCode::F3;
    case '>':
      return KeyCode::F6;
    case 'k':
      return KeyCode::F9;
    case 'q':
      return KeyCode::F10;
    default:
      return KeyCode::Text;
  }
}

void press_letter(ViewState& view, char letter, const Model& model) {
  if (letter == 'p') view.paused = !view.paused;
  if (letter == 'I') view.descending = !view.descending;
  if (letter == '<') sort_by_next(view, -1);
  if (letter == ']' && view.first_node + 1 < model.nodes.size()) ++view.first_node;
  if (letter == '[' && view.first_node > 0) --view.first_node;
}

}  // namespace

std::vector<JobView> listed_jobs(const Model& model, const ViewState& view) {
  std::vector<JobView> jobs;
  std::ranges::copy_if(model.jobs, std::back_inserter(jobs),
                       [&](const JobView& job) { return matches(job, view.filter); });
  std::ranges::sort(jobs, [&](const JobView& a, const JobView& b) {
    return view.descending ? is_before(b, a, view.sort) : is_before(a, b, view.sort);
  });
  return jobs;
}

std::vector<StyledLine> render(const Model& model, const ViewState& view, ScreenSize size) {
  std::vector<StyledLine> out;
  if (view.shows_help) {
    out = help();
  } else {
    add_header(out, model, view, size);
    add_matrix(out, model, size);
    const auto left = size.lines > out.size() + 2 ? size.lines - out.size() - 2 : 0;
    const auto for_jobs = std::min(left / 2, lines_of_jobs(listed_jobs(model, view), view));
    add_loads(out, model, view, size, left - for_jobs);
    const auto rest = size.lines > out.size() + 1 ? size.lines - out.size() - 1 : 0;
    add_jobs(out, model, view, rest);
    out.resize(std::max(size.lines, std::size_t{1}) - 1);
    out.push_back(key_line(view));
  }
  if (out.size() > size.lines) out.resize(size.lines);
  for (auto& line : out) cut(line, size.columns);
  return out;
}

UserCommand press(ViewState& view, const KeyPress& pressed, const Model& model) {
  if (view.shows_help) {
    view.shows_help = false;
    return {};
  }
  if (view.types_filter) {
    press_in_filter(view, pressed);
    return {};
  }
  if (view.asks_cancel != 0) {
    const auto job = std::exchange(view.asks_cancel, 0);
    return {.cancel = pressed.key == KeyCode::Text && pressed.text == 'y' ? job : 0};
  }
  constexpr std::ptrdiff_t kPage = 10;
  const auto jobs = listed_jobs(model, view);
  switch (key_of(pressed)) {
    case KeyCode::Up:
      move(view, -1, jobs.size());
      break;
    case KeyCode::Down:
      move(view, 1, jobs.size());
      break;
    case KeyCode::PageUp:
      move(view, -kPage, jobs.size());
      break;
    case KeyCode::PageDown:
      move(view, kPage, jobs.size());
      break;
    case KeyCode::Home:
      view.chosen = 0;
      break;
    case KeyCode::End:
      view.chosen = jobs.empty() ? 0 : jobs.size() - 1;
      break;
    case KeyCode::F1:
      view.shows_help = true;
      break;
    case KeyCode::F3:
      view.types_filter = true;
      break;
    case KeyCode::F6:
      sort_by_next(view, 1);
      break;
    case KeyCode::F9:
      if (view.chosen < jobs.size()) view.asks_cancel = jobs[view.chosen].job;
      break;
    case KeyCode::F10:
      view.done = true;
      break;
    case KeyCode::Text:
      press_letter(view, pressed.text, model);
      break;
    case KeyCode::Enter:
    case KeyCode::Escape:
    case KeyCode::Backspace:
      break;
  }
  return {};
}

}  // namespace score::sctop

#include "scout/slurm/words/option_words.hpp"

#include "base/text.hpp"
#include "base/text/plain.hpp"

#include <utility>

namespace score::scout::slurm {

namespace {

constexpr std::size_t kShown = 80;

class Reader {
 public:
  Reader(std::span<const OptionForm> forms, const std::vector<std::string>& args)
      : forms_(forms), args_(args) {}

  Result<CommandLine> read(Order order) {
    for (; at_ < args_.size(); ++at_) {
      const std::string& word = args_[at_];
      if (word == "--") {
        ++at_;
        break;
      }
      const bool is_option = word.size() > 1 && word[0] == '-';
      if (!is_option && order == Order::OptionsFirst) break;
      if (!is_option) {
        line_.words.push_back(word);
        continue;
      }
      auto taken = word.starts_with("--") ? take_long(word) : take_letters(word);
      if (!taken) return taken.error();
    }
    for (; at_ < args_.size(); ++at_) line_.words.push_back(args_[at_]);
    return std::move(line_);
  }

 private:
  Status take_long(const std::string& word) {
    const auto equals = word.find('=');
    const std::string name = word.substr(2, equals == word.npos ? word.npos : equals - 2);
    const auto form = find_long(name);
    if (!form) return form.error();
    std::optional<std::string> value;
    if (equals != word.npos) value = word.substr(equals + 1);
    if (value && (*form)->takes == Takes::Nothing) {
      return fail(Errc::Malformed, "--{} takes no value", (*form)->name);
    }
    return take(**form, std::move(value));
  }

  Status take_letters(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const OptionForm* form = find_letter(word[i]);
      if (form == nullptr) {
        return fail(Errc::Malformed, "unknown option -{}",
                    escape_terminal(word.substr(i, 1), kShown));
      }
      std::optional<std::string> value;
      const bool is_last = i + 1 == word.size();
      if (form->takes != Takes::Nothing && !is_last) {
        value = word.substr(i + 1);
        i = word.size();
      }
      if (auto taken = take(*form, std::move(value)); !taken) return taken;
    }
    return {};
  }

  Status take(const OptionForm& form, std::optional<std::string> value) {
    if (form.takes == Takes::Value && !value) {
      if (at_ + 1 == args_.size()) return fail(Errc::Malformed, "--{} needs a value", form.name);
      value = args_[++at_];
    }
    line_.options.push_back({form.name, value.value_or(""), value.has_value()});
    return {};
  }

  Result<const OptionForm*> find_long(const std::string& name) const {
    const OptionForm* found = nullptr;
    std::vector<std::string> known;
    for (const OptionForm& form : forms_) {
      known.emplace_back(form.name);
      if (form.name == name) return &form;
      if (name.empty() || !form.name.starts_with(name)) continue;
      if (found != nullptr) {
        return fail(Errc::Malformed, "--{} is not complete: --{} and --{} begin with it",
                    escape_terminal(name, kShown), found->name, form.name);
      }
      found = &form;
    }
    if (found != nullptr) return found;
    const std::string near = nearest_word(name, known);
    return fail(Errc::Malformed, "unknown option --{}{}", escape_terminal(name, kShown),
                near.empty() ? "" : "; did you mean --" + near + "?");
  }

  [[nodiscard]] const OptionForm* find_letter(char letter) const {
    for (const OptionForm& form : forms_) {
      if (form.letter == letter && letter != 0) return &form;
    }
    return nullptr;
  }

  std::span<const OptionForm> forms_;
  const std::vector<std::string>& args_;
  std::size_t at_ = 0;
  CommandLine line_;
};

}  // namespace

bool CommandLine::has(std::string_view name) const {
  return last(name).has_value();
}

std::optional<std::string> CommandLine::last(std::string_view name) const {
  std::optional<std::string> value;
  for (const GivenOption& option : options) {
    if (option.name == name) value = option.value;
  }
  return value;
}

std::string CommandLine::list(std::string_view name) const {
  std::string all;
  for (const GivenOption& option : options) {
    if (option.name == name) all += (all.empty() ? "" : ",") + option.value;
  }
  return all;
}

Result<CommandLine> read_options(std::span<const OptionForm> forms,
                                 const std::vector<std::string>& args, Order order) {
  return Reader(forms, args).read(order);
}

}  // namespace score::scout::slurm

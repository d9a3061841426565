// cutaway completion: a script for the shell that completes commands, options and their values, made from the table that the command itself reads.
#include <algorithm>
#include <cstdio>

#include "app/cli/command.h"
#include "core/capabilities/capabilities.h"
#include "core/base/text.h"

namespace cutaway::cli {
namespace {

struct OptionWords {
  std::vector<std::string> names;      // "-o", "--output"
  std::string help;                    // its first sentence
  bool takes_value = false, is_number = false;
  std::vector<std::string> choices;    // empty: a file, or anything
};
struct CommandWords {
  std::string name, summary;
  std::vector<OptionWords> options;
  std::vector<std::string> words;      // what its first argument may be; empty: a file
};

/// CLI11 keeps the words that an option takes in its type alone: "TEXT:{text,json}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.rfind('}');
  std::vector<std::string> out;
  if (open == std::string::npos || close == std::string::npos) return out;
  for (size_t at = open + 1; at < close;) {
    const size_t end = std::min(type.find(',', at), close);
    out.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string first_part(const std::string& help) { return help.substr(0, help.find(';')); }

std::vector<CommandWords> collect() {
  std::vector<CommandWords> out;
  std::vector<std::string> backends;
  for (const capabilities::Row& row : capabilities::rows()) backends.emplace_back(row.name);
  for (const Command& c : commands()) {
    if (c.summary.empty()) continue;   // for our own processes
    CLI::App app(std::string(c.summary), std::string(c.name));
    c.declare(app);
    CommandWords words{std::string(c.name), std::string(c.summary), {}, {}};
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_lnames().empty() && option->get_snames().empty()) {
        if (words.words.empty()) words.words = choices_of(*option);
        continue;
      }
      OptionWords o;
      for (const std::string& name : option->get_snames()) o.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) o.names.push_back("--" + name);
      o.help = first_part(option->get_description());
      o.takes_value = option->get_items_expected_max() > 0;
      const std::string type = option->get_type_name();
      o.is_number = type.starts_with("INT") || type.starts_with("FLOAT") || type.starts_with("UINT");
      o.choices = choices_of(*option);
      if (o.names.back() == "--backend") o.choices = backends;
      words.options.push_back(std::move(o));
    }
    out.push_back(std::move(words));
  }
  return out;
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string bash_script() {
  const std::vector<CommandWords> all = collect();
  std::vector<std::string> names;
  for (const CommandWords& c : all) names.push_back(c.name);
  std::string out = "# bash completion of cutaway; `cutaway completion bash` writes it.\n"
                    "_cutaway() {\n"
                    "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
                    "  COMPREPLY=()\n"
                    "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                    "    COMPREPLY=( $(compgen -W " + single_quoted(base::join(names, " ") + " --help --version") + " -- \"$current\") )\n"
                    "    return\n"
                    "  fi\n"
                    "  case \"$command $before\" in\n";
  for (const CommandWords& c : all) {
    std::vector<std::string> numbers;
    for (const OptionWords& o : c.options) {
      if (!o.takes_value) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : o.names) patterns.push_back(single_quoted(c.name + " " + name));
      if (!o.choices.empty()) out += "    " + base::join(patterns, "|") + ") COMPREPLY=( $(compgen -W " + single_quoted(base::join(o.choices, " ")) + " -- \"$current\") ); return ;;\n";
      else if (o.is_number) numbers.insert(numbers.end(), patterns.begin(), patterns.end());
    }
    if (!numbers.empty()) out += "    " + base::join(numbers, "|") + ") return ;;\n";
  }
  out += "  esac\n"
         "  case \"$current\" in\n"
         "  -*)\n"
         "    case \"$command\" in\n";
  for (const CommandWords& c : all) {
    std::vector<std::string> words;
    for (const OptionWords& o : c.options) words.insert(words.end(), o.names.begin(), o.names.end());
    out += "    " + c.name + ") COMPREPLY=( $(compgen -W " + single_quoted(base::join(words, " ")) + " -- \"$current\") ) ;;\n";
  }
  out += "    esac\n"
         "    return ;;\n"
         "  esac\n"
         "  case \"$command\" in\n";
  for (const CommandWords& c : all)
    if (!c.words.empty()) out += "  " + c.name + ") COMPREPLY=( $(compgen -W " + single_quoted(base::join(c.words, " ")) + " -- \"$current\") ); return ;;\n";
  return out + "  esac\n"
               "  COMPREPLY=( $(compgen -f -- \"$current\") )\n"
               "}\n"
               "complete -o filenames -F _cutaway cutaway\n";
}

std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_script() {
  const std::vector<CommandWords> all = collect();
  std::string out = "#compdef cutaway\n"
                    "# zsh completion of cutaway; `cutaway completion zsh` writes it.\n"
                    "_cutaway() {\n"
                    "  local -a commands\n"
                    "  commands=(\n";
  for (const CommandWords& c : all) out += "    " + single_quoted(c.name + ":" + zsh_escaped(c.summary)) + "\n";
  out += "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe -t commands command commands\n"
         "    return\n"
         "  fi\n"
         "  local command=$words[2]\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case $command in\n";
  for (const CommandWords& c : all) {
    out += "  " + c.name + ")\n    _arguments \\\n";
    for (const OptionWords& o : c.options) {
      const std::string help = "[" + zsh_escaped(o.help) + "]";
      std::string value;
      if (!o.choices.empty()) value = ":value:(" + zsh_escaped(base::join(o.choices, " ")) + ")";
      else if (o.takes_value) value = o.is_number ? ":number: " : ":value:_files";
      for (const std::string& name : o.names) {
        const std::string others = o.names.size() > 1 ? "(" + base::join(o.names, " ") + ")" : "";   // one of its names is enough
        out += "      " + single_quoted(others + name + help + value) + " \\\n";
      }
    }
    out += c.words.empty() ? "      '*:file:_files'\n" : "      " + single_quoted("1:word:(" + base::join(c.words, " ") + ")") + "\n";
    out += "    ;;\n";
  }
  return out + "  esac\n"
               "}\n"
               "if [ \"$funcstack[1]\" = _cutaway ]; then _cutaway \"$@\"; else compdef _cutaway cutaway; fi\n";
}

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_script() {
  std::string out = "# fish completion of cutaway; `cutaway completion fish` writes it.\n";
  for (const CommandWords& c : collect()) {
    out += "complete -c cutaway -n __fish_use_subcommand -f -a " + c.name + " -d " + fish_quoted(c.summary) + "\n";
    const std::string here = " -n " + fish_quoted("__fish_seen_subcommand_from " + c.name);
    if (!c.words.empty()) out += "complete -c cutaway" + here + " -f -a " + fish_quoted(base::join(c.words, " ")) + "\n";
    for (const OptionWords& o : c.options) {
      out += "complete -c cutaway" + here;
      for (const std::string& name : o.names) out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!o.choices.empty()) out += " -x -a " + fish_quoted(base::join(o.choices, " "));
      else if (o.takes_value) out += o.is_number ? " -x" : " -r";
      out += " -d " + fish_quoted(o.help) + "\n";
    }
  }
  return out;
}

}  // namespace

std::function<int()> declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  app.footer("Prints a script for the shell. To have it in every shell:\n"
             "  bash   cutaway completion bash > ~/.local/share/bash-completion/completions/cutaway\n"
             "  zsh    cutaway completion zsh > \"${fpath[1]}/_cutaway\"\n"
             "  fish   cutaway completion fish > ~/.config/fish/completions/cutaway.fish\n"
             "For this one: eval \"$(cutaway completion bash)\".");
  return [shell] {
    std::fputs((*shell == "bash" ? bash_script() : *shell == "zsh" ? zsh_script() : fish_script()).c_str(), stdout);
    return kOk;
  };
}

}  // namespace cutaway::cli

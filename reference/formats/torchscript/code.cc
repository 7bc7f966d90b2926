// SPDX-License-Identifier: BSD-3-Clause
// Parses class heads as python_print.cpp prints them (torch/csrc/jit/serialization, 2.13, printNamedType):
// two spaces per level, one declaration per line, methods after the head. Skips bodies.
#include <algorithm>

#include "reference/formats/refusal.h"
#include "reference/formats/torchscript/internal.h"

namespace qcts {
namespace {

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool is_name(std::string_view text) {
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (c & 0x80) != 0;
  };
  return !text.empty() && std::ranges::all_of(text, word);
}

// Memory of a class in the map; of a name, field or constant in a list that grows by doubling.
constexpr uint64_t kClassBytes = sizeof(ScriptClass) + 96, kNameBytes = 3 * sizeof(std::string),
                   kFieldBytes = 3 * sizeof(ScriptClass::Constant);

// Parses ["weight", "bias", ] into its strings; false for anything else.
bool read_names(std::string_view text, std::vector<std::string>& names, ReadBudget& budget) {
  if (!take_prefix(text, "[")) return false;
  while (take_prefix(text, "\"")) {
    const size_t end = text.find('"');
    if (end == text.npos) return false;
    budget.take_bytes(kNameBytes + text_block_bytes(end));
    names.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (!take_prefix(text, ", ")) break;
  }
  return text == "]";
}

class CodeReader {
 public:
  CodeReader(std::string_view source, const std::string& module, ScriptClasses& classes, ReadBudget& budget)
      : source_(source), module_(module), classes_(classes), budget_(budget) {}

  void run() {
    for (size_t at = 0; at < source_.size();) {
      const size_t end = std::min(source_.find('\n', at), source_.size());
      ++line_number_;
      read_line(source_.substr(at, end - at));
      at = end + 1;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    refuse(RefusalClass::SubclassSchema,
           "code of " + module_ + ", line " + std::to_string(line_number_) + ": " + what);
  }

  void read_line(std::string_view line) {
    if (line.find_first_not_of(' ') == line.npos) return;
    if (line[0] != ' ') return read_top(line);
    // Deeper lines are bodies and method arguments, or bodies of top-level functions.
    if (current_ != nullptr && take_prefix(line, "  ") && line[0] != ' ') read_member(line);
  }

  void read_top(std::string_view line) {
    current_ = nullptr;
    for (const char* passed_over : {"def ", "op_version_set = ", "import "})
      if (line.starts_with(passed_over)) return;
    if (!take_prefix(line, "class ") || !line.ends_with(':')) fail("neither a class nor a function");
    line.remove_suffix(1);
    ScriptClass found;
    if (const size_t open = line.find('('); open != line.npos) {
      if (!line.ends_with(')')) fail("not a class head");
      found.base = line.substr(open + 1, line.size() - open - 2);
      line = line.substr(0, open);
    }
    if (!is_name(line)) fail("not a class name");
    budget_.take_bytes(kClassBytes + 2 * text_block_bytes(module_.size() + line.size() + 1) +
                       text_block_bytes(found.base.size()));
    found.name = module_ + "." + std::string(line);
    const auto [entry, fresh] = classes_.emplace(found.name, found);
    if (!fresh) fail("class " + found.name + " is defined twice");
    current_ = &entry->second;
  }

  void read_member(std::string_view line) {
    ScriptClass& cls = *current_;
    if (take_prefix(line, "def ")) {
      const std::string_view name = line.substr(0, line.find('('));
      budget_.take_bytes(kNameBytes + text_block_bytes(name.size()));
      cls.methods.emplace_back(name);
    } else if (take_prefix(line, "__parameters__ = ")) {
      if (!read_names(line, cls.parameters, budget_)) fail("not a list of parameters");
    } else if (take_prefix(line, "__buffers__ = ")) {
      if (!read_names(line, cls.buffers, budget_)) fail("not a list of buffers");
    } else if (take_prefix(line, "__annotations__[\"")) {
      const size_t end = line.find("\"] = ");
      if (end == line.npos) fail("no annotation");
      add_field(line.substr(0, end), line.substr(end + 5));
    } else if (line == "pass" || line.starts_with("__annotations__ = ") ||
               line.starts_with("__forward_hooks__ = ") || line.starts_with("__forward_pre_hooks__ = ")) {
      return;
    } else if (cls.base == "Enum") {
      budget_.take_bytes(kFieldBytes + text_block_bytes(line.size()));
      const size_t equals = line.find(" = ");
      if (equals == line.npos || !is_name(line.substr(0, equals))) fail("not an enum member");
      cls.constants.push_back(
          {std::string(line.substr(0, equals)), "", std::string(line.substr(equals + 3))});
    } else {
      const size_t colon = line.find(" : ");
      if (colon == line.npos) fail("not a class attribute");
      add_field(line.substr(0, colon), line.substr(colon + 3));
    }
  }

  void add_field(std::string_view name, std::string_view type) {
    budget_.take_bytes(kFieldBytes + text_block_bytes(name.size()) + text_block_bytes(type.size()));
    if (name.empty() || name.find('"') != name.npos) fail("not an attribute name");
    if (!take_prefix(type, "Final[")) {
      current_->fields.push_back({std::string(name), std::string(type)});
      return;
    }
    const size_t end = type.find("] = ");
    if (end == type.npos) fail("a constant without a value");
    current_->constants.push_back(
        {std::string(name), std::string(type.substr(0, end)), std::string(type.substr(end + 4))});
  }

  const std::string_view source_;
  const std::string& module_;
  ScriptClasses& classes_;
  ReadBudget& budget_;
  ScriptClass* current_ = nullptr;
  uint64_t line_number_ = 0;
};

}  // namespace

bool ScriptClass::has_method(std::string_view method) const {
  return std::ranges::find(methods, method) != methods.end();
}

void read_script_classes(std::string_view source, const std::string& module, ScriptClasses& classes,
                         ReadBudget& budget) {
  CodeReader(source, module, classes, budget).run();
}

}  // namespace qcts

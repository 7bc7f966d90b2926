// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/help_format.h"

#include <sstream>

#include <unistd.h>

#include "suites/base/terminal.h"

namespace qcts::cli {
namespace {

constexpr size_t kLeastColumns = 20;

// Breaks lines between words. The text's own line ends stay.
std::string broken(const std::string& text, size_t columns) {
  std::istringstream lines(text);
  std::string out, line, word;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    size_t used = 0;
    while (words >> word) {
      const size_t width = columns_of(word);
      const bool fits = used == 0 || used + 1 + width <= columns;
      if (used != 0) out += fits ? ' ' : '\n';
      out += word;
      used = fits && used != 0 ? used + 1 + width : width;
    }
    out += '\n';
  }
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

size_t columns() { return screen_of(STDOUT_FILENO).columns; }

// The column next to the names.
std::string beside(const std::string& text, size_t names) {
  return broken(text, std::max(kLeastColumns, columns() - std::min(columns(), names)));
}

}  // namespace

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  return beside(Formatter::make_option_desc(option), column_width_);
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  std::ostringstream out;
  CLI::detail::format_help(out, command->get_name(), beside(command->get_description(), column_width_),
                           column_width_);
  return out.str();
}

std::string HelpFormat::make_description(const CLI::App* app) const {
  return broken(Formatter::make_description(app), columns()) + "\n";
}

std::string HelpFormat::make_footer(const CLI::App* app) const {
  const std::string footer = app->get_footer();
  return footer.empty() ? "" : "\n" + broken(footer, columns()) + "\n";
}

}  // namespace qcts::cli

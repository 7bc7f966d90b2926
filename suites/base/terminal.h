// SPDX-License-Identifier: BSD-3-Clause
// Formats text for a terminal: its width and colours, line breaks, tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qcts {

struct Screen {
  size_t columns = 80;
  bool terminal = false;
  bool colour = false;
};
// Returns the properties of the terminal. The width is COLUMNS if that is a positive number.
// Otherwise the width is the terminal's, or 80 columns. The width is at least 40.
// Colour needs a terminal, a TERM other than dumb, and NO_COLOR unset or empty.
Screen screen_of(int fd);

enum class Ink { plain, bold, green, red, yellow, faint };

// Returns the columns that UTF-8 text takes on a terminal.
// Wide East Asian characters and emoji take two columns, all other characters one.
size_t columns_of(std::string_view text);
// Returns the longest beginning of the text that takes at most `columns`.
// The result ends in "..." if anything is left out.
std::string clipped_to(std::string_view text, size_t columns);
// Formats a number as "1,114,112".
std::string with_commas(double whole);
// Formats the value with `digits` digits after the point: fixed(2.5, 2) is "2.50".
std::string fixed(double value, int digits);

enum class Align { left, right };
struct Column {
  std::string title;
  Align align = Align::left;
};
using TableRow = std::vector<std::string>;

// Builds text in which no line is wider than the screen, except for path(). Escapes control characters.
class Printout {
 public:
  explicit Printout(Screen screen) : screen_(screen) {}

  // Writes the text from column `indent` on, with breaks between words.
  // Later lines start two columns further right.
  // A word that does not fit a line is broken after one of "/_.,:-", or else anywhere.
  void text(std::string_view text, size_t indent = 0, Ink ink = Ink::plain);
  // Writes a label, padded to `width` columns, and the text next to it. Later lines start below the text.
  void item(std::string_view label, size_t width, std::string_view text, Ink ink = Ink::plain);
  // Writes a shell command that can be pasted, with " \" before each line break.
  // A word that does not fit is broken by a backslash and continues in the first column.
  // A word with quotes inside stays whole.
  void command(std::string_view command, size_t indent = 0);
  // Writes titles and rows. All columns but the first are as wide as their widest cell.
  // If that leaves too little room for the first cell of a row, that cell gets its own line.
  // Returns false and writes nothing if the other columns alone do not fit.
  bool table(const std::vector<Column>& columns, const std::vector<TableRow>& rows, size_t indent = 0);
  // Writes the path on one line, however long, so that it can be clicked and copied.
  void path(std::string_view path);
  void blank();

  const Screen& screen() const { return screen_; }
  const std::string& str() const { return out_; }

 private:
  void line(std::string_view text, Ink ink);
  // Continues a line that begins with `now`. Later lines start in column `later`.
  void broken(std::string now, std::string_view escaped, size_t later, Ink ink);
  const Screen screen_;
  std::string out_;
};

}  // namespace qcts

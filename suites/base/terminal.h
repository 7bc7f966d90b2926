// SPDX-License-Identifier: BSD-3-Clause
// Text that fits a terminal: its width and colours, broken lines, tables.
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
// Returns COLUMNS if that is a positive number, otherwise the terminal's width, otherwise 80 columns; at
// least
// 40. Colour needs a terminal, TERM other than dumb, and NO_COLOR unset or empty.
Screen screen_of(int fd);

enum class Ink { plain, bold, green, red, yellow, faint };

// Columns that UTF-8 text takes on a terminal: two for wide East Asian characters and emoji, one for others.
size_t columns_of(std::string_view text);
// Returns the longest beginning of the text that takes at most `columns`, with "..." if something is left
// out.
std::string clipped_to(std::string_view text, size_t columns);
// "1,114,112"
std::string with_commas(double whole);
// The value with `digits` digits after the point: fixed(2.5, 2) is "2.50".
std::string fixed(double value, int digits);

enum class Align { left, right };
struct Column {
  std::string title;
  Align align = Align::left;
};
using TableRow = std::vector<std::string>;

// Builds text of which no line is wider than the screen, except path()s. Control characters are escaped.
class Printout {
 public:
  explicit Printout(Screen screen) : screen_(screen) {}

  // Writes the text from column `indent` on, broken between words; later lines start two columns further
  // right. A word that does not fit a line is broken after one of "/_.,:-", or else anywhere.
  void text(std::string_view text, size_t indent = 0, Ink ink = Ink::plain);
  // Writes a label, padded to `width` columns, and the text beside it; later lines start below the text.
  void item(std::string_view label, size_t width, std::string_view text, Ink ink = Ink::plain);
  // Writes a shell command, with " \" before each break, so that it can be pasted. A word that does not fit
  // is broken by a backslash, and goes on in the first column; a word with quotes inside stays whole.
  void command(std::string_view command, size_t indent = 0);
  // Writes titles and rows. Other columns than the first are as wide as their widest cell. If that leaves too
  // little for the first cell of a row, that cell has a line of its own. Returns false and writes nothing if
  // the other columns alone do not fit.
  bool table(const std::vector<Column>& columns, const std::vector<TableRow>& rows, size_t indent = 0);
  void path(std::string_view path);  // on one line, however long, so that it can be clicked and copied
  void blank();

  const Screen& screen() const { return screen_; }
  const std::string& str() const { return out_; }

 private:
  void line(std::string_view text, Ink ink);
  // Goes on in a line that begins with `now`; later lines start in column `later`.
  void broken(std::string now, std::string_view escaped, size_t later, Ink ink);
  const Screen screen_;
  std::string out_;
};

}  // namespace qcts

// SPDX-License-Identifier: BSD-3-Clause
#include "suites/base/terminal.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/ioctl.h>
#include <unistd.h>

#include "suites/base/printable.h"

namespace qcts {
namespace {

constexpr size_t kUsualColumns = 80, kFewestColumns = 40;

size_t columns_asked() {
  const char* word = std::getenv("COLUMNS");
  size_t columns = 0;
  if (word == nullptr) return 0;
  const char* end = word + std::strlen(word);
  const auto [stop, error] = std::from_chars(word, end, columns);
  return error == std::errc() && stop == end ? columns : 0;
}

size_t columns_of_terminal(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0;
}

const char* code_of(Ink ink) {
  switch (ink) {
    case Ink::bold:
      return "\033[1m";
    case Ink::green:
      return "\033[32m";
    case Ink::red:
      return "\033[31m";
    case Ink::yellow:
      return "\033[33m";
    case Ink::faint:
      return "\033[2m";
    default:
      return "";
  }
}

// Unicode's East Asian Width W and F, in blocks.
bool is_wide(uint32_t c) {
  struct Range {
    uint32_t first, last;
  };
  constexpr Range kWide[] = {{0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23F3},   {0x25FD, 0x25FE},
                             {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267F, 0x27BF},   {0x2B1B, 0x2B55},
                             {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},
                             {0xF900, 0xFAFF},   {0xFE10, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
                             {0x16FE0, 0x18CFF}, {0x1AFF0, 0x1B2FF}, {0x1F000, 0x1FAFF}, {0x20000, 0x3FFFD}};
  return std::ranges::any_of(kWide, [c](const Range& r) { return r.first <= c && c <= r.last; });
}

// Length of the UTF-8 character at the start of the text, and its columns.
struct Glyph {
  size_t bytes = 1, columns = 1;
};

Glyph first_glyph(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {};
  size_t bytes = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  bytes = std::min(bytes, text.size());
  uint32_t code = bytes == 1 ? lead : lead & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  return {bytes, is_wide(code) ? size_t{2} : size_t{1}};
}

// Bytes of the longest beginning that takes at most `columns`; at least one character.
size_t bytes_that_fit(std::string_view text, size_t columns) {
  size_t bytes = 0, used = 0;
  while (bytes < text.size()) {
    const Glyph next = first_glyph(text.substr(bytes));
    if (used + next.columns > columns && bytes > 0) break;
    bytes += next.bytes;
    used += next.columns;
  }
  return bytes;
}

// The same, broken after a separator if there is one in the second half.
size_t bytes_of_piece(std::string_view word, size_t columns) {
  const size_t most = bytes_that_fit(word, columns);
  if (most == word.size()) return most;
  const size_t after = word.substr(0, most).find_last_of("/_.,:-");
  return after == word.npos || after + 1 <= most / 2 ? most : after + 1;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// Splits a command at spaces outside of quotes.
std::vector<std::string_view> shell_words(std::string_view command) {
  std::vector<std::string_view> words;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i <= command.size(); ++i) {
    if (i < command.size() && command[i] == '\\' && !quoted) {
      ++i;
      continue;
    }
    if (i < command.size() && command[i] == '\'') quoted = !quoted;
    if (i < command.size() && (quoted || command[i] != ' ')) continue;
    if (i > begin) words.push_back(command.substr(begin, std::min(i, command.size()) - begin));
    begin = i + 1;
  }
  return words;
}

std::string padded(const std::string& cell, size_t width, Align align) {
  const size_t used = columns_of(cell);
  const std::string pad(width > used ? width - used : 0, ' ');
  return align == Align::right ? pad + cell : cell + pad;
}

constexpr size_t kGap = 2;

size_t widest(const std::vector<Column>& columns, const std::vector<TableRow>& rows, size_t at) {
  size_t width = columns_of(columns[at].title);
  for (const TableRow& row : rows) width = std::max(width, columns_of(row[at]));
  return width;
}

}  // namespace

Screen screen_of(int fd) {
  Screen screen;
  screen.terminal = ::isatty(fd) != 0;
  size_t columns = columns_asked();
  if (columns == 0) columns = columns_of_terminal(fd);
  screen.columns = std::max(columns == 0 ? kUsualColumns : columns, kFewestColumns);
  const char* kind = std::getenv("TERM");
  screen.colour =
      screen.terminal && !is_set("NO_COLOR") && kind != nullptr && std::string_view(kind) != "dumb";
  return screen;
}

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Glyph next = first_glyph(text);
    columns += next.columns;
    text.remove_prefix(next.bytes);
  }
  return columns;
}

std::string clipped_to(std::string_view text, size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns < 4) return std::string(columns, '.');
  return std::string(text.substr(0, bytes_that_fit(text, columns - 3))) + "...";
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string with_commas(double whole) {
  std::string digits = fixed(whole, 0);
  const int sign = whole < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > sign; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

void Printout::line(std::string_view text, Ink ink) {
  const size_t last = text.find_last_not_of(' ');
  text = text.substr(0, last == text.npos ? 0 : last + 1);
  const size_t first = text.find_first_not_of(' ');
  const bool coloured = screen_.colour && ink != Ink::plain && first != text.npos;
  if (coloured) {
    out_ += text.substr(0, first);
    out_ += code_of(ink);
    out_ += text.substr(first);
    out_ += "\033[0m";
  } else {
    out_ += text;
  }
  out_ += '\n';
}

void Printout::path(std::string_view path) { line(printable(path), Ink::plain); }

void Printout::blank() { out_ += '\n'; }

void Printout::broken(std::string now, std::string_view escaped, size_t later, Ink ink) {
  bool empty = true;
  const auto next_line = [&] {
    line(now, ink);
    now.assign(later, ' ');
    empty = true;
  };
  for (std::string_view word : words_of(escaped)) {
    if (!empty && columns_of(now) + 1 + columns_of(word) > screen_.columns) next_line();
    while (empty && columns_of(now) + columns_of(word) > screen_.columns) {
      const size_t piece = bytes_of_piece(word, screen_.columns - columns_of(now));
      now += word.substr(0, piece);
      word.remove_prefix(piece);
      next_line();
    }
    if (!empty) now += ' ';
    now += word;
    empty = false;
  }
  if (!empty) line(now, ink);
}

void Printout::text(std::string_view given, size_t indent, Ink ink) {
  broken(std::string(indent, ' '), printable(given), indent + 2, ink);
}

void Printout::item(std::string_view label, size_t width, std::string_view given, Ink ink) {
  const std::string first = padded(printable(label), width, Align::left);
  const std::string escaped = printable(given);
  if (words_of(escaped).empty())
    line(first, ink);
  else
    broken(first, escaped, width, ink);
}

void Printout::command(std::string_view given, size_t indent) {
  const std::string escaped = printable(given);
  const std::vector<std::string_view> words = shell_words(escaped);
  std::string now(indent, ' ');
  bool empty = true;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word(words[i]);
    const size_t mark = i + 1 < words.size() ? 2 : 0;  // columns of " \"
    if (!empty && columns_of(now) + 1 + columns_of(word) + mark > screen_.columns) {
      out_ += now + " \\\n";
      now.assign(indent + 2, ' ');
      empty = true;
    }
    const bool quoted = word.size() > 2 && word.front() == '\'' && word.back() == '\'';
    const std::string_view body =
        std::string_view(word).substr(quoted ? 1 : 0, word.size() - (quoted ? 2 : 0));
    const bool breakable = body.find_first_of("'\"") == body.npos;
    while (empty && breakable && columns_of(now) + columns_of(word) + mark > screen_.columns) {
      size_t piece = bytes_of_piece(word, screen_.columns - now.size() - (quoted ? 4 : 3));
      while (!quoted && piece > 1 && word[piece - 1] == '\\') --piece;  // it escapes what follows
      out_ += now + word.substr(0, piece) + (quoted ? "'\\\n" : "\\\n");
      word = (quoted ? "'" : "") + word.substr(piece);
      now.clear();
    }
    if (!empty) now += ' ';
    now += word;
    empty = false;
  }
  if (!empty) out_ += now + "\n";
}

bool Printout::table(const std::vector<Column>& columns, const std::vector<TableRow>& given, size_t indent) {
  std::vector<TableRow> rows = given;
  for (TableRow& row : rows)
    for (std::string& cell : row) cell = printable(cell);
  std::vector<size_t> widths;
  size_t others = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(widest(columns, rows, i));
    if (i > 0) others += kGap + widths[i];
  }
  const size_t least = columns_of(columns.front().title);
  if (indent + least + others > screen_.columns) return false;
  widths[0] = std::min(widths[0], screen_.columns - indent - others);
  const auto write = [&](const TableRow& row, Ink ink) {
    const bool alone = columns_of(row[0]) > widths[0];
    if (alone) text(row[0], indent);
    if (alone &&
        std::all_of(row.begin() + 1, row.end(), [](const std::string& cell) { return cell.empty(); }))
      return;
    std::string now = std::string(indent, ' ') + padded(alone ? "" : row[0], widths[0], columns[0].align);
    for (size_t i = 1; i < row.size(); ++i)
      now += std::string(kGap, ' ') + padded(row[i], widths[i], columns[i].align);
    line(now, ink);
  };
  TableRow titles;
  for (const Column& column : columns) titles.push_back(column.title);
  write(titles, Ink::bold);
  for (const TableRow& row : rows) write(row, Ink::plain);
  return true;
}

}  // namespace qcts

// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/names/name_pattern.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>

namespace qcts {
namespace {

constexpr size_t kUnbounded = std::numeric_limits<size_t>::max();

std::bitset<256> range_of(char first, char last) {
  std::bitset<256> set;
  for (int c = first; c <= last; ++c) set.set(static_cast<size_t>(c));
  return set;
}

std::bitset<256> escaped_set(char c) {
  if (c == 'd') return range_of('0', '9');
  if (c == 'w') return range_of('0', '9') | range_of('a', 'z') | range_of('A', 'Z') | range_of('_', '_');
  if (std::isalnum(static_cast<unsigned char>(c)) != 0)
    throw std::invalid_argument(std::string("the escape \\") + c + " in a pattern");
  return range_of(c, c);
}

}  // namespace

class NamePattern::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Sequence whole() {
    std::vector<Sequence> found = alternatives();
    if (at_ != text_.size()) fail("an unmatched )");
    if (found.size() == 1) return std::move(found[0]);
    Atom group;
    group.kind = Kind::group;
    group.inner = std::move(found);
    return {group};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument("pattern " + std::string(text_) + ": " + what);
  }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  char next() {
    if (at_ == text_.size()) fail("it ends too early");
    return text_[at_++];
  }

  std::vector<Sequence> alternatives() {
    std::vector<Sequence> found(1);
    while (at_ < text_.size() && text_[at_] != ')') {
      if (take("|"))
        found.emplace_back();
      else
        found.back().push_back(repeated(atom()));
    }
    return found;
  }

  Atom atom() {
    Atom atom;
    if (take("^")) {
      atom.kind = Kind::begin;
    } else if (take("$")) {
      atom.kind = Kind::end;
    } else if (take("(")) {
      open_group(atom);
      atom.inner = alternatives();
      if (!take(")")) fail("a group without )");
    } else if (take("[")) {
      atom.set = bracket();
    } else if (take(".")) {
      atom.set.set();
    } else if (take("\\")) {
      atom.set = escaped_set(next());
    } else {
      const char c = next();
      if (std::string_view("*+?{").find(c) != std::string_view::npos) fail("nothing to repeat");
      atom.set = range_of(c, c);
    }
    return atom;
  }

  void open_group(Atom& atom) {
    atom.kind = Kind::group;
    if (take("?:")) return;
    atom.negative = text_.substr(at_).starts_with("?!") || text_.substr(at_).starts_with("?<!");
    if (take("?!") || take("?=")) {
      atom.kind = Kind::ahead;
    } else if (take("?<!") || take("?<=")) {
      atom.kind = Kind::behind;
    } else if (take("?")) {
      fail("an unknown kind of group");
    } else {
      atom.capture = ++captures_;
    }
  }

  std::bitset<256> bracket() {
    std::bitset<256> set;
    const bool inverted = take("^");
    while (!take("]")) {
      const char first = next();
      if (first == '\\') {
        set |= escaped_set(next());
      } else if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        set |= range_of(first, next());
      } else {
        set |= range_of(first, first);
      }
    }
    return inverted ? ~set : set;
  }

  Atom repeated(Atom atom) {
    if (take("*"))
      atom.min = 0, atom.max = kUnbounded;
    else if (take("+"))
      atom.max = kUnbounded;
    else if (take("?"))
      atom.min = 0;
    if (at_ < text_.size() && std::string_view("*+?{").find(text_[at_]) != std::string_view::npos)
      fail("a repetition that is not supported");
    return atom;
  }

  std::string_view text_;
  size_t at_ = 0;
  int captures_ = 0;
};

// Matches by backtracking. What follows an atom is a continuation.
class NamePattern::Matcher {
 public:
  explicit Matcher(std::string_view name) : name_(name) {}

  std::optional<NameMatch> match_at(size_t begin, const std::vector<Sequence>& branches) {
    for (size_t branch = 0; branch < branches.size(); ++branch) {
      if (cannot_begin(branches[branch], begin)) continue;
      groups_.assign(1, {});
      size_t end = 0;
      const bool found = sequence(branches[branch], 0, begin, [&](size_t at) {
        end = at;
        return true;
      });
      if (!found) continue;
      groups_[0] = name_.substr(begin, end - begin);
      return NameMatch{begin, end, branch, groups_};
    }
    return std::nullopt;
  }
  bool is_exhausted() const { return steps_ >= kMaxSteps; }

 private:
  using Then = std::function<bool(size_t)>;
  static constexpr size_t kMaxSteps = 20'000;

  // Rejects most places at once.
  bool cannot_begin(const Sequence& atoms, size_t at) const {
    if (atoms.empty()) return false;
    const Atom& first = atoms[0];
    if (first.kind == Kind::begin) return at != 0;
    return first.kind == Kind::set && first.min > 0 &&
           (at == name_.size() || !first.set[static_cast<unsigned char>(name_[at])]);
  }

  bool sequence(const Sequence& atoms, size_t index, size_t at, const Then& then) {
    if (++steps_ >= kMaxSteps) return false;
    if (index == atoms.size()) return then(at);
    const Atom& atom = atoms[index];
    const auto rest = [&](size_t after) { return sequence(atoms, index + 1, after, then); };
    switch (atom.kind) {
      case Kind::set:
        return bytes(atom, at, rest);
      case Kind::begin:
        return at == 0 && rest(at);
      case Kind::end:
        return at == name_.size() && rest(at);
      case Kind::group:
        return group(atom, 0, at, rest);
      case Kind::ahead:
        return any_of(atom, at, [](size_t) { return true; }) != atom.negative && rest(at);
      case Kind::behind:
        return ends_here(atom, at) != atom.negative && rest(at);
    }
    return false;
  }

  bool bytes(const Atom& atom, size_t at, const Then& rest) {
    size_t count = 0;
    while (count < atom.max && at + count < name_.size() &&
           atom.set[static_cast<unsigned char>(name_[at + count])])
      ++count;
    if (count < atom.min) return false;
    for (size_t taken = count + 1; taken-- > atom.min;)
      if (rest(at + taken)) return true;
    return false;
  }

  bool group(const Atom& atom, size_t count, size_t at, const Then& rest) {
    const auto again = [&](size_t after) {
      if (atom.capture > 0) {
        groups_.resize(std::max(groups_.size(), static_cast<size_t>(atom.capture) + 1));
        groups_[static_cast<size_t>(atom.capture)] = name_.substr(at, after - at);
      }
      return atom.max > count + 1 && after > at ? group(atom, count + 1, after, rest) : rest(after);
    };
    return any_of(atom, at, again) || (count >= atom.min && rest(at));
  }

  bool any_of(const Atom& atom, size_t at, const Then& then) {
    return std::ranges::any_of(atom.inner,
                               [&](const Sequence& inner) { return sequence(inner, 0, at, then); });
  }

  bool ends_here(const Atom& atom, size_t at) {
    for (size_t begin = 0; begin <= at; ++begin)
      if (any_of(atom, begin, [&](size_t end) { return end == at; })) return true;
    return false;
  }

  std::string_view name_;
  std::vector<std::string_view> groups_;
  size_t steps_ = 0;
};

NamePattern::NamePattern(const std::vector<std::string>& branches) {
  for (const std::string& branch : branches) {
    branches_.push_back(Parser(branch).whole());
    literals_.push_back(literal_of(branches_.back()));
  }
}

// Returns the longest text that follows from the atoms outside groups.
std::string NamePattern::literal_of(const Sequence& atoms) {
  std::string longest, run;
  for (const Atom& atom : atoms) {
    const bool is_one = atom.kind == Kind::set && atom.min == 1 && atom.max == 1 && atom.set.count() == 1;
    size_t byte = 0;
    while (is_one && !atom.set[byte]) ++byte;
    run = is_one ? run + static_cast<char>(byte) : "";
    if (run.size() > longest.size()) longest = run;
  }
  return longest;
}

std::optional<NameMatch> NamePattern::search(std::string_view name) const {
  constexpr size_t kMaxBytes = 1024;
  if (name.size() > kMaxBytes) return std::nullopt;
  const auto is_held = [&](const std::string& literal) { return name.find(literal) != name.npos; };
  if (std::ranges::none_of(literals_, is_held)) return std::nullopt;
  Matcher matcher(name);
  for (size_t begin = 0; begin <= name.size() && !matcher.is_exhausted(); ++begin)
    if (std::optional<NameMatch> found = matcher.match_at(begin, branches_)) return found;
  return std::nullopt;
}

}  // namespace qcts

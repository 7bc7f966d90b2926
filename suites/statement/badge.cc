// SPDX-License-Identifier: BSD-3-Clause
#include "suites/statement/badge.h"

#include "reference/formats/io/mapped_file.h"
#include "reports/markup.h"
#include "suites/base/run_error.h"
#include "suites/statement/envelope.h"
#include "suites/statement/predicate.h"
#include "suites/statement/verify.h"

namespace qcts {
namespace fs = std::filesystem;
namespace {

constexpr int kHeight = 20, kLabelWidth = 36, kMessageWidth = 74;

// Two boxes, "qcts" and "conformant"; a viewer shows the title next to the pointer.
std::string badge_svg(const std::string& title) {
  const std::string height = std::to_string(kHeight), label = std::to_string(kLabelWidth),
                    message = std::to_string(kMessageWidth),
                    width = std::to_string(kLabelWidth + kMessageWidth);
  const auto box = [&](const std::string& x, const std::string& wide, const char* colour) {
    return "<rect x=\"" + x + "\" width=\"" + wide + "\" height=\"" + height + "\" fill=\"" + colour + "\"/>";
  };
  const auto word = [](int middle, const char* text) {
    return "<text x=\"" + std::to_string(middle) + "\" y=\"14\">" + text + "</text>";
  };
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
         "\" role=\"img\" aria-label=\"qcts: conformant\"><title>" + markup_text(title) + "</title>" +
         box("0", label, "#444") + box(label, message, "#2a7d2a") +
         "<g fill=\"#fff\" text-anchor=\"middle\" font-family=\"sans-serif\" font-size=\"11\">" +
         word(kLabelWidth / 2, "qcts") + word(kLabelWidth + kMessageWidth / 2, "conformant") + "</g></svg>\n";
}

// A vendor's words within Markdown, where they can neither end the line nor begin markup.
std::string plain(const std::string& text) {
  std::string escaped;
  for (const char c : markup_text(text)) {
    if (std::string_view("\\`*_[]|!").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string badge_markdown(const Predicate& predicate, const std::string& line, const Envelope& envelope,
                           const fs::path& statement, const std::string& sha256) {
  const RunHead& head = predicate.head;
  const nlohmann::ordered_json& provider = head.providers.front();
  const std::string library = fs::path(provider.value("library", "")).filename().string();
  std::string signers;
  for (const Envelope::Signature& one : envelope.signatures)
    signers += (signers.empty() ? "signed by key " : ", ") + plain(one.keyid);
  return "![qcts: conformant](badge.svg)\n\n" + plain(line) + "\n\n- " + plain(predicate.product) + " of " +
         plain(predicate.vendor) + ", " + (signers.empty() ? "not signed" : signers) + "\n- " +
         plain(library) + ", SHA-256 " + provider.value("sha256", "") + "\n- judged " +
         plain(head.started_utc) + " by qcts " + plain(head.suite_version) + " (" + plain(head.suite_commit) +
         "), plan " + plain(head.plan) + "\n- " + plain(statement.filename().string()) + ", SHA-256 " +
         sha256 + "; to check it: `qcts verify FILE --provider LIBRARY`\n";
}

}  // namespace

std::vector<fs::path> write_statement_badge(const fs::path& statement) {
  VerifyRequest request;
  request.statement = statement;
  const VerifyResult checked = verify_statement(request);
  if (!checked.faults.empty()) throw Failure("no badge: the statement is refused: " + checked.faults.front());
  const Envelope envelope = envelope_from_text(statement_text(statement));
  const Predicate predicate = predicate_from_statement(json_without_twins(envelope.payload));
  const std::string& line = checked.lines.front();
  const fs::path folder = statement.parent_path();
  const auto write = [&](const char* name, const std::string& text) {
    write_file_atomically(folder / name, std::as_bytes(std::span(text)));
    return folder / name;
  };
  return {write("badge.svg", badge_svg(line)),
          write("badge.md", badge_markdown(predicate, line, envelope, statement,
                                           text_sha256(statement_text(statement))))};
}

}  // namespace qcts

// SPDX-License-Identifier: BSD-3-Clause
// Formats --help in lines that fit the terminal.
#pragma once

#include <CLI/CLI.hpp>

namespace qcts::cli {

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace qcts::cli

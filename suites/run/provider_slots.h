// SPDX-License-Identifier: BSD-3-Clause
// Finds the providers of a run and sets the options of their workers. The parent never loads a provider.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "suites/run/run.h"
#include "suites/run/supervisor.h"

namespace qcts {

// Returns one word per provider: the name of a builtin one, or the path of a shared library. Throws RunError
// if a path is none, or if a provider is also a peer.
std::vector<std::string> provider_words(const RunRequest& request);

// Returns the slot for such a word, not started yet. `folders`: the fixture folders.
ProviderSlot slot_for(const std::string& word, const RunRequest& request,
                      const std::vector<std::filesystem::path>& folders, const std::filesystem::path& logs,
                      const std::filesystem::path& scratch);

// Returns the provider's name if the word alone tells it: "builtin" for "builtin", "aten" for
// ".../libqcts_aten.so", "" for a vendor's library.
std::string provider_of_word(const std::string& word);
// Is the provider of a slot that has said its name to be judged?
bool is_asked(const ProviderSlot& slot, const RunRequest& request);
// Is it a peer, whose latency never gates?
bool is_peer(const ProviderSlot& slot, const RunRequest& request);
// Could the selection take a case of this provider? False only if the selection names other providers or only
// kinds that this one never judges; it is then not started.
bool may_judge(const std::string& word, const Selection& selection);

// Returns false if the slot's handshake said that the variant cannot run here.
bool is_runnable(const ProviderSlot& slot, const std::string& variant);

}  // namespace qcts

// SPDX-License-Identifier: BSD-3-Clause
// Finds the providers of a run and sets the options of their workers.
// The parent itself never loads a provider.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "suites/run/run.h"
#include "suites/run/workers/supervisor.h"

namespace qcts {

// Returns one word per provider: the name of a builtin one, or the path of a shared library. Throws RunError
// if a path is not a library, or if a provider is also a peer.
std::vector<std::string> provider_words(const RunRequest& request);

// Returns the slot for a word of provider_words(). Its worker is not started yet.
// `folders` are the fixture folders.
ProviderSlot slot_for(const std::string& word, const RunRequest& request,
                      const std::vector<std::filesystem::path>& folders, const std::filesystem::path& logs,
                      const std::filesystem::path& scratch);

// Returns the provider's name if the argument itself reveals it, or else "".
// The word "builtin" gives "builtin", ".../libqcts_aten.so" gives "aten", a vendor's library gives "".
std::string provider_of_word(const std::string& word);
// Returns true if the word names a provider of this project: a builtin one, or a plug-in of its build.
bool is_shipped(const std::string& word);
// Returns true if the provider of a slot that has said its name is to be judged.
bool is_asked(const ProviderSlot& slot, const RunRequest& request);
// Returns true if the provider of the slot is a peer, whose latency never gates.
bool is_peer(const ProviderSlot& slot, const RunRequest& request);
// Returns true if the selection may take a case of this provider.
// Returns false only if the selection names other providers, or only kinds that this one never judges.
// The provider is then not started.
bool may_judge(const std::string& word, const Selection& selection);

// Returns false if the slot's handshake said that the variant cannot run on this machine.
bool is_runnable(const ProviderSlot& slot, const std::string& variant);

}  // namespace qcts

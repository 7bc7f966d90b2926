// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes pickle protocol 2 as torch.save writes it. Reads protocol 3 if it uses no other opcodes.
// Converts bytes to a graph of values with identity, and back.
// The reader interprets an allow-list of 34 opcodes and calls nothing.
// The opcodes are the set of torch/_weights_only_unpickler.py, 2.13.
// The writer emits the same bytes as CPython's C pickler.
// Memo indices follow the identity of nodes, never their value, which is why nodes are shared.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "reference/formats/compact.h"
#include "reference/formats/refusal.h"

namespace qcts::pickle {

enum class Kind : uint8_t {
  none,
  boolean,
  integer,
  // An integer beyond 64 bits. `text` is its two's complement, little-endian.
  // The text has as few bytes as keep the sign (9 to 255).
  big_integer,
  real,
  string,
  bytes,
  tuple,
  list,
  dict,
  set,
  // A class or function. `text` is "module name", as in the file.
  // If a legacy file named the global by the tuple ("module", class, file, source), items[0] is this tuple.
  global,
  // REDUCE: items[0] is the callable, items[1] the argument tuple, and appended items follow.
  // For pairs and state see Node.
  call,
  new_object,  // NEWOBJ: items[0] is the class, items[1] the argument tuple
  persistent,  // BINPERSID: items[0] is the id tuple
  // Stands for a value that holds it, `integer` levels above, so that graphs stay acyclic.
  // `offset` is that of the value.
  enclosing,
};

struct Node;
struct NodeSlab;

// A counted reference to a node. The count is inside the node, because a file has millions of nodes.
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(Node* node) : node_(node) { hold(); }
  Ref(const Ref& other) : node_(other.node_) { hold(); }
  Ref(Ref&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Ref() { release(); }

  Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  Node& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) = default;
  friend bool operator==(const Ref& a, std::nullptr_t) { return a.node_ == nullptr; }

 private:
  inline void hold();
  inline void release();

  Node* node_ = nullptr;
};

using Refs = Array<Ref>;
using Pairs = Array<std::pair<Ref, Ref>>;

// One value, in 64 bytes. Two references to one Node are the same object in the pickle's memo.
struct Node {
  // The reference count, and the slab that holds the node unless it was allocated by itself.
  // Copies start with neither.
  struct Own {
    Own() = default;
    Own(const Own&) {}
    Own& operator=(const Own&) { return *this; }
    NodeSlab* slab = nullptr;
    std::atomic<uint32_t> references{0};
  };
  [[no_unique_address]] Own own;
  Kind kind = Kind::none;
  bool boolean = false;
  uint16_t placed : 1 = 0;   // true if another node holds it and the reader no longer changes it
  uint16_t height : 15 = 0;  // length of the longest path below it; used while reading
  union {
    int64_t integer = 0;
    double real;
  };
  Text text;            // a string (UTF-8, surrogatepass), bytes, a big_integer, or "module name" of a global
  Refs items;           // items of a tuple, list or set; for call and new_object see Kind
  Pairs pairs;          // pairs of a dict, or of SETITEM(S) on a call (OrderedDict, Counter)
  Ref state;            // state of BUILD on a call or new_object
  uint64_t offset = 0;  // offset of its opcode in data.pkl, plus ReadOptions::base_offset; for messages

  // Returns true if only one reference leads to the node, so that a walk meets it once.
  bool is_single() const { return own.references.load(std::memory_order_relaxed) <= 1; }
  bool is_leaf() const { return items.empty() && pairs.empty() && state == nullptr; }
  // Returns the items appended to a call or new_object, which follow the first two.
  std::span<const Ref> appended() const {
    return std::span<const Ref>(items.begin(), items.end()).subspan(2);
  }
};

static_assert(sizeof(Node) == 64);

void destroy(Node* node);  // called when the last reference is gone

void Ref::hold() {
  if (node_ != nullptr) node_->own.references.fetch_add(1, std::memory_order_relaxed);
}
void Ref::release() {
  if (node_ != nullptr && node_->own.references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(node_);
}

Ref make_node(Kind kind);
Ref copy_of(const Node& node);  // shares the children of `node`
Ref none();
Ref boolean(bool value);
Ref integer(int64_t value);
// Makes an integer from its two's complement of at most 255 bytes, little-endian.
Ref integer(std::span<const std::byte> bytes);
Ref real(double value);
Ref string(std::string_view value);
Ref tuple(Refs items);
Ref list(Refs items);
Ref dict();
Ref global(std::string_view module, std::string_view name);
Ref call(Ref callable, Refs arguments);
Ref persistent(Ref id);

// Returns true if `node` is this global, as in is_global(node, "collections", "OrderedDict").
bool is_global(const Ref& node, std::string_view module, std::string_view name);
// Returns true if `node` is a call of this global.
bool is_call(const Ref& node, std::string_view module, std::string_view name);
// Returns the digits of an integer or big_integer.
// The digits are decimal up to 256 bits, and "0x..." beyond, so that the time is linear.
std::string integer_text(const Ref& node);
// Returns the value of a string key in a dict or an OrderedDict call, or nullptr if the key is absent.
Ref find(const Ref& mapping, std::string_view key);

// Total cost of reading pickles.
struct ReadCost {
  uint64_t opcodes = 0;
  uint64_t pickle_bytes = 0;
  uint64_t heap_bytes = 0;  // heap bytes of the graph
};

struct ReadOptions {
  Limits limits;
  std::vector<std::string> allow;  // more globals to allow, "module.name"; their objects are kept opaque
  uint64_t base_offset = 0;        // position of the pickle in its file, added to all offsets
  bool module_ids = false;         // true: a persistent id may be ("module", class, file, source)
  bool cycles = false;             // true: a value may hold itself, which Kind::enclosing stands for
  ReadCost* cost = nullptr;
};

// Reads `data`, which is exactly one pickle, from PROTO 2 to STOP.
// The graph is acyclic and has a depth of at most limits.pickle_depth.
Ref read(std::span<const std::byte> data, const ReadOptions& options = {});

// Reads a pickle that other bytes follow. `used` receives its length, including STOP.
Ref read_first(std::span<const std::byte> data, uint64_t& used, const ReadOptions& options = {});

struct WriteOptions {
  // String nodes that the writer treats as one object if their texts are equal.
  // Python does this for the tags and keys of torch's persistent ids.
  std::unordered_set<const Node*> shared_strings;
  bool module_ids =
      true;  // false: a class that a legacy file named by the id of a module is written by its name
};

// Writes the graph. read(write(g)) has the shape and the identities of g.
// write(read(b)) == b for bytes that CPython wrote.
// Throws Refused (PickleType) for Kind::enclosing outside the value that it stands for.
// Equal globals are one object, whichever nodes hold them.
std::vector<std::byte> write(const Ref& root, const WriteOptions& options = {});

}  // namespace qcts::pickle

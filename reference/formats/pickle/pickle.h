// SPDX-License-Identifier: BSD-3-Clause
// Pickle protocol 2 as torch.save writes it, and 3 where it uses no other opcodes: converts bytes to a graph
// of values with identity, and back. The reader interprets an allow-list of 34 opcodes (the set of
// torch/_weights_only_unpickler.py, 2.13) and calls nothing. The writer emits the same bytes as CPython's C
// pickler. Memo indices follow node identity, never value, which is why nodes are shared.
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
  big_integer,  // an integer beyond 64 bits: text = two's complement, little-endian, in 9 to 255 bytes, as
                // few as keep the sign
  real,
  string,
  bytes,
  tuple,
  list,
  dict,
  set,
  global,      // text = "module name": module and name of a class or function, as in the file. items[0]: the
               // tuple
               // ("module", class, file, source) of a legacy file, where that named it
  call,        // REDUCE: items[0] callable, items[1] argument tuple, then appended items; pairs and state as
               // below
  new_object,  // NEWOBJ: items[0] class, items[1] argument tuple
  persistent,  // BINPERSID: items[0] the id tuple
};

struct Node;
struct NodeSlab;

// A counted reference to a node. The count is inside the node: a file has millions of them.
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

// One value, 64 bytes. Two references to one Node are the same object in the pickle's memo.
struct Node {
  // The reference count, and the slab the node lies in unless it was allocated alone. Copies start fresh.
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
  uint16_t placed : 1 = 0;   // another node holds it, and the reader no longer changes it
  uint16_t height : 15 = 0;  // longest path below it; used while reading
  union {
    int64_t integer = 0;
    double real;
  };
  Text text;            // string (UTF-8, surrogatepass), bytes, big_integer, or "module name" of a global
  Refs items;           // tuple, list, set; call and new_object as above
  Pairs pairs;          // dict; also SETITEM(S) on a call (OrderedDict, Counter)
  Ref state;            // BUILD on a call or new_object
  uint64_t offset = 0;  // of its opcode in data.pkl, plus ReadOptions::base_offset; for messages

  // Has only one reference, so a walk meets it once.
  bool is_single() const { return own.references.load(std::memory_order_relaxed) <= 1; }
  bool is_leaf() const { return items.empty() && pairs.empty() && state == nullptr; }
  // Items appended to a call or new_object: those after the first two.
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
// As above, for any two's complement of at most 255 bytes, little-endian.
Ref integer(std::span<const std::byte> bytes);
Ref real(double value);
Ref string(std::string_view value);
Ref tuple(Refs items);
Ref list(Refs items);
Ref dict();
Ref global(std::string_view module, std::string_view name);
Ref call(Ref callable, Refs arguments);
Ref persistent(Ref id);

// Is `node` this global, as in is_global(node, "collections", "OrderedDict")?
bool is_global(const Ref& node, std::string_view module, std::string_view name);
// Is `node` a call of this global?
bool is_call(const Ref& node, std::string_view module, std::string_view name);
// Returns the digits of an integer or big_integer: decimal up to 256 bits, "0x..." beyond, so that the time
// is linear.
std::string integer_text(const Ref& node);
// Returns the value of a string key in a dict or an OrderedDict call; nullptr when absent.
Ref find(const Ref& mapping, std::string_view key);

// Total cost of reading pickles.
struct ReadCost {
  uint64_t opcodes = 0;
  uint64_t pickle_bytes = 0;
  uint64_t heap_bytes = 0;  // of the graph
};

struct ReadOptions {
  Limits limits;
  std::vector<std::string> allow;  // more globals to allow, "module.name"; kept opaque
  uint64_t base_offset = 0;        // position of the pickle in its file, added to all offsets
  bool module_ids = false;         // persistent ids may be ("module", class, file, source)
  ReadCost* cost = nullptr;
};

// Reads `data`, one whole pickle: PROTO 2 ... STOP and nothing after. The graph is acyclic and at most
// limits.pickle_depth deep.
Ref read(std::span<const std::byte> data, const ReadOptions& options = {});

// As above, for a pickle followed by other bytes; `used` receives its length, STOP included.
Ref read_first(std::span<const std::byte> data, uint64_t& used, const ReadOptions& options = {});

struct WriteOptions {
  // String nodes that the writer treats as one object where their texts are equal, as Python does for the
  // tags and keys of torch's persistent ids.
  std::unordered_set<const Node*> shared_strings;
  bool module_ids =
      true;  // false: a class that a legacy file named by the id of a module is written by its name
};

// Writes the graph. read(write(g)) has the shape and identities of g; write(read(b)) == b for bytes that
// CPython wrote. Equal globals are one object, whichever nodes hold them.
std::vector<std::byte> write(const Ref& root, const WriteOptions& options = {});

}  // namespace qcts::pickle

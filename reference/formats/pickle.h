// Pickle protocol 2 as torch.save writes it: bytes <-> a graph of values with identity. The reader is an allow-list interpreter
// (34 opcodes, the set of torch/_weights_only_unpickler.py, 2.13); it calls nothing. The writer emits what CPython's C pickler
// emits for the same graph: memo indices are handed out by node identity, never by value, which is why nodes are shared pointers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "reference/formats/refusal.h"

namespace qcts::pickle {

enum class Kind : uint8_t {
  none, boolean, integer, real, string, bytes,
  tuple, list, dict, set,
  global,      // text = "module name": module and name of a class or function, as spelt in the file
  call,        // REDUCE: items[0] callable, items[1] argument tuple; then appended items/pairs and state as below
  new_object,  // NEWOBJ: items[0] class, items[1] argument tuple
  persistent,  // BINPERSID: items[0] the id tuple
};

struct Node;
using Ref = std::shared_ptr<Node>;

// One value. Two references to one Node are one object in the pickle's memo.
struct Node {
  Kind kind = Kind::none;
  bool boolean = false;
  bool placed = false;   // another node holds it; the reader changes such a node no more
  uint16_t height = 0;   // longest path below it, while it is read
  int64_t integer = 0;
  double real = 0;
  std::string text;                         // string (UTF-8, surrogatepass), bytes, or "module name" of a global
  std::vector<Ref> items;                   // tuple, list, set; call and new_object as above
  std::vector<std::pair<Ref, Ref>> pairs;   // dict; also SETITEM(S) on a call (OrderedDict, Counter)
  std::vector<Ref> appended;                // APPEND(S) on a call
  Ref state;                                // BUILD on a call or new_object
  uint64_t offset = 0;                      // byte in data.pkl of the opcode that made it; for messages
};

Ref none();
Ref boolean(bool value);
Ref integer(int64_t value);
Ref real(double value);
Ref string(std::string value);
Ref tuple(std::vector<Ref> items);
Ref list(std::vector<Ref> items);
Ref dict();
Ref global(std::string_view module, std::string_view name);
Ref call(Ref callable, std::vector<Ref> arguments);
Ref persistent(Ref id);

// "collections", "OrderedDict" -> true when `node` is that global.
bool is_global(const Ref& node, std::string_view module, std::string_view name);
// true when `node` is a call of that global
bool is_call(const Ref& node, std::string_view module, std::string_view name);
// The value under a string key of a dict or of an OrderedDict call; nullptr when absent.
Ref find(const Ref& mapping, std::string_view key);

// Names allowed beside the built-in table, "module.name"; kept opaque.
struct ReadOptions {
  Limits limits;
  std::vector<std::string> allow;
};

// `data` is one whole pickle: PROTO 2 ... STOP and nothing after. Acyclic, depth <= limits.pickle_depth.
Ref read(std::span<const std::byte> data, const ReadOptions& options = {});

struct WriteOptions {
  // String nodes that count as one object where their texts are equal, as the tags and keys of torch's persistent ids do in Python.
  std::unordered_set<const Node*> shared_strings;
};

// Bytes for the graph. read(write(g)) has the shape and identity of g; write(read(b)) == b for what CPython wrote. Globals are one
// object a name, whichever nodes spell them.
std::vector<std::byte> write(const Ref& root, const WriteOptions& options = {});

}  // namespace qcts::pickle

// SPDX-License-Identifier: BSD-3-Clause
// Tests the pickle interpreter on handwritten pickles. Rows (P1 ...) are those of the malformed corpus.
#include "reference/formats/pickle/pickle.h"

#include <gtest/gtest.h>

#include <set>

#include "reference/formats/pickle/globals.h"
#include "reference/formats/testing.h"

namespace qcts {
namespace {

using namespace std::string_literals;
using testing::outcome;
using testing::to_bytes;

const std::string kProto = "\x80\x02";

std::string read_outcome(const std::string& body, const pickle::ReadOptions& options = {}) {
  return outcome([&] { pickle::read(to_bytes(kProto + body), options); });
}

std::string le32(uint32_t value) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string unicode(const std::string& text) { return "X" + le32(static_cast<uint32_t>(text.size())) + text; }
std::string global_opcode(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

struct PickleCase {
  std::string name, body, required;
};
void PrintTo(const PickleCase& c, std::ostream* out) { *out << c.name; }

class Pickle : public ::testing::TestWithParam<PickleCase> {};

TEST_P(Pickle, HasTheRequiredOutcome) { EXPECT_EQ(read_outcome(GetParam().body), GetParam().required); }

const std::string kOrdered = global_opcode("collections", "OrderedDict");
const std::string kEncode = global_opcode("_codecs", "encode");

std::vector<PickleCase> cases() {
  std::vector<PickleCase> all = {
      {"p01_torch_load", global_opcode("torch", "load") + ".", "PickleGlobal"},
      {"p01_numpy", global_opcode("numpy.core.multiarray", "_reconstruct") + ".", "PickleGlobal"},
      {"p01_partial", global_opcode("functools", "partial") + ".", "PickleGlobal"},
      {"p01_name_shifted_into_module", global_opcode("torch", "_utils._rebuild_tensor_v2") + ".",
       "PickleGlobal"},
      {"p03_reduce_on_nothing", "R.", "PickleStack"},
      {"p03_tuple3_of_one", "N\x87.", "PickleStack"},
      {"p03_stop_on_nothing", ".", "PickleStack"},
      {"p03_tuple_without_mark", "Nt.", "PickleStack"},
      {"p03_odd_items", "}(Nu.", "PickleStack"},
      {"p03_operand_below_mark", "]N(a.", "PickleStack"},
      {"p03_left_over", "NN.", "PickleStack"},
      {"p03_mark_left_over", "(N.", "PickleStack"},
      {"p04_get_unset", "h\0."s, "PickleStack"},
      {"p04_get_hole", "Nq\0h\1."s, "PickleStack"},
      {"p05_sparse_memo", "Nr\xff\xff\xff\xff.", "LimitExceeded"},
      {"p06_long_string",
       "X\xff\xff\xff\xff"
       "abc",
       "Truncated"},
      {"p07_bad_utf8", unicode("\xff\xfe") + ".", "PickleType"},
      {"p07_surrogate", unicode("\xed\xa0\x80") + ".", "accepted"},
      {"p07_overlong", unicode("\xc0\x80") + ".", "PickleType"},
      {"p08_no_stop", "N", "Truncated"},
      {"p08_empty", "", "Truncated"},
      {"p08_global_without_end", "ctorch", "Truncated"},
      {"p09_after_stop", "N.N", "PickleStack"},
      {"p10_list_as_key", "}]Ns.", "PickleType"},
      {"p10_tuple_as_key", "}N\x85Ns.", "accepted"},
      {"p10_tuple_twice", "}(N\x85NN\x85Nu.", "PickleType"},
      {"p10_tuple_of_a_list", "}]\x85Ns.", "PickleType"},
      {"p10_size_and_tuple", "}(K\1\x85N" + global_opcode("torch", "Size") + "K\1\x85\x85RNu.", "PickleType"},
      {"p10_tuples_of_parts",
       "}(" + unicode("a") + unicode("bc") + "\x86N" + unicode("ab") + unicode("c") + "\x86Nu.", "accepted"},
      {"p10_long_and_real",
       "}(\x8a\x09" + std::string(8, '\0') + "\x40NG\x44\x50" + std::string(6, '\0') + "Nu.", "PickleType"},
      {"p10_long_and_next_real",
       "}(\x8a\x09" + std::string(8, '\0') + "\x40NG\x44\x60" + std::string(6, '\0') + "Nu.", "accepted"},
      {"p10_least_long_and_real",
       "}(\x8a\x08" + std::string(7, '\0') + "\x80NG\xc3\xe0" + std::string(6, '\0') + "Nu.", "PickleType"},
      {"p10_nan_twice", "}(G\x7f\xf8" + std::string(6, '\0') + "NG\x7f\xf8" + std::string(6, '\0') + "Nu.",
       "accepted"},
      {"p10_empty_bytes_twice",
       "}(" + global_opcode("__builtin__", "bytes") + ")RN" + kEncode + unicode("") + unicode("latin1") +
           "\x86RNu.",
       "PickleType"},
      {"p10_key_of_nested_tuples",
       [] {
         std::string s = "})";
         for (int i = 0; i < 22; ++i) s += "q\0h\0\x86"s;
         return s + "Ns.";
       }(),
       "LimitExceeded"},
      {"p10_key_twice", "}(K\1NK\1Nu.", "PickleType"},
      {"p10_bool_and_one", "}(K\1N\x88Nu.", "PickleType"},
      {"p11_append_to_dict", "}Na.", "PickleType"},
      {"p11_append_to_tuple", ")Na.", "PickleType"},
      {"p11_build_list", "]}b.", "PickleType"},
      {"p11_set_item_on_list", "]NNs.", "PickleType"},
      {"p12_build_ordered_int", kOrdered + ")RK\1b.", "PickleType"},
      {"p12_build_ordered_items", kOrdered + ")R}" + unicode("items") + "K\1sb.", "PickleType"},
      {"p12_build_ordered_metadata", kOrdered + ")R}" + unicode("_metadata") + "Nsb.", "accepted"},
      {"p12_build_ordered_more", kOrdered + ")R}" + unicode("step") + "Nsb.", "accepted"},
      {"p12_build_twice", kOrdered + ")R}" + unicode("_metadata") + "Nsb}" + unicode("_metadata") + "Nsb.",
       "PickleType"},
      {"p14_tuples",
       [] {
         std::string s = "N";
         for (int i = 0; i < 200000; ++i) s += '\x85';
         return s + ".";
       }(),
       "LimitExceeded"},
      {"p14_lists", std::string(200000, ']') + std::string(199999, 'a') + ".", "LimitExceeded"},
      {"p14_depth_of_the_limit",
       [] {
         std::string s = "N";
         for (int i = 0; i < 511; ++i) s += '\x85';
         return s + ".";
       }(),
       "accepted"},
      {"p15_list_in_itself", "]q\0h\0a."s, "PickleType"},
      {"p15_dict_in_itself_by_tuple", "}q\0K\1h\0\x85s."s, "PickleType"},
      {"p16_bytearray_of_size", global_opcode("builtins", "bytearray") + "J\0\0\0\x40\x85R."s, "PickleCall"},
      {"p16_float_tensor", global_opcode("torch", "FloatTensor") + "K\x08\x85R.", "PickleCall"},
      {"p16_untyped_storage", global_opcode("torch.storage", "UntypedStorage") + "K\x08\x85R.", "PickleCall"},
      {"p17_encode_latin1", kEncode + unicode("ab") + unicode("latin1") + "\x86R.", "accepted"},
      {"p17_encode_punycode", kEncode + unicode("ab") + unicode("punycode") + "\x86R.", "PickleCall"},
      {"p17_encode_zlib", kEncode + unicode("ab") + unicode("zlib") + "\x86R.", "PickleCall"},
      {"p17_encode_beyond_latin1", kEncode + unicode("\xe4\xb8\xad") + unicode("latin1") + "\x86R.",
       "PickleCall"},
      {"p18_long_integer", "\x8a\xff" + std::string(255, '\x7f') + ".", "accepted"},
      {"p18_nine_bytes_of_sign", "\x8a\x09" + std::string(8, '\0') + "\1.", "accepted"},
      {"p18_unsigned_64", "\x8a\x09" + std::string(8, '\xff') + "\0."s, "accepted"},
      {"p18_long_as_size",
       global_opcode("torch", "Size") + "\x8a\x09" + std::string(8, '\0') + "\1\x85\x85R.", "PickleCall"},
      {"p18_long_beyond_its_end", "\x8a\xff" + std::string(200, '\1'), "Truncated"},
      {"p18_long4_of_2_gib", "\x8b\xff\xff\xff\x7f.", "PickleOpcode"},
      {"p18_least_integer", "\x8a\x08" + std::string(7, '\0') + "\x80.", "accepted"},
      {"p33_new_dtype", global_opcode("torch", "float32") + ")\x81.", "PickleCall"},
      {"p33_new_function", global_opcode("torch._utils", "_rebuild_tensor_v2") + ")\x81.", "PickleCall"},
      {"p33_call_integer", "K\1)R.", "PickleCall"},
      {"p33_call_dtype", global_opcode("torch", "float32") + ")R.", "PickleCall"},
      {"p33_call_without_tuple", kOrdered + "]R.", "PickleType"},
      {"p33_too_few_arguments", global_opcode("torch._utils", "_rebuild_tensor_v2") + ")R.", "PickleCall"},
      {"p34_shared_value",
       [] {
         std::string s = "]q\0"s;
         for (int i = 1; i < 60; ++i)
           s += "h"s + static_cast<char>(i - 1) + "h"s + static_cast<char>(i - 1) + "\x86q" +
                static_cast<char>(i);
         return "(" + s + "t.";
       }(),
       "accepted"},
  };
  for (const char* module :
       {"os", "posix", "nt", "sys", "subprocess", "builtins", "__builtin__", "argparse"}) {
    for (const char* name : {"system", "eval", "exec", "getattr", "Popen", "Namespace", "modules"}) {
      all.push_back({"p01_"s + module + "_" + name, global_opcode(module, name) + ".", "PickleGlobal"});
    }
  }
  all.push_back({"p09_protocol_3", "\x80\3N."s, "accepted"});
  for (int version : {0, 1, 4, 5, 255}) {
    all.push_back(
        {"p09_protocol_" + std::to_string(version), "\x80"s + static_cast<char>(version) + "N.", "Version"});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Corpus, Pickle, ::testing::ValuesIn(cases()),
                         [](const ::testing::TestParamInfo<PickleCase>& info) { return info.param.name; });

// Every byte outside the 34 opcodes of the allow-list is refused as an opcode, whatever is on the stack.
TEST(PickleOpcodes, ThirtyFourAreKnown) {
  int known = 0;
  for (int opcode = 0; opcode < 256; ++opcode) {
    try {
      pickle::read(to_bytes(kProto + "]N" + static_cast<char>(opcode)));
      ++known;
    } catch (const Refused& refused) {
      known += refused.refusal().cls != RefusalClass::PickleOpcode;
    }
  }
  EXPECT_EQ(known, 34);
}

TEST(PickleReader, NeedsTheProtocolFirst) {
  EXPECT_EQ(outcome([] { pickle::read(to_bytes("N.")); }), "Version");
}

TEST(PickleReader, NamesGlobalAndOffset) {
  try {
    pickle::read(to_bytes(kProto + "]q\0"s + global_opcode("os", "system") + "."));
    FAIL() << "os.system was accepted";
  } catch (const Refused& refused) {
    EXPECT_NE(refused.refusal().detail.find("os.system"), std::string::npos);
    EXPECT_EQ(refused.refusal().offset, 5u);
    EXPECT_TRUE(refused.refusal().security);
  }
}

TEST(PickleReader, KeepsAllowedGlobalsOpaque) {
  const std::string body = global_opcode("my.module", "Thing") + "q\0K\1\x85q\1Rq\2}q\3X\1\0\0\0aq\4K\2sb."s;
  EXPECT_EQ(read_outcome(body), "PickleGlobal");
  pickle::ReadOptions options;
  options.allow = {"my.module.Thing", "os.system"};
  const pickle::Ref root = pickle::read(to_bytes(kProto + body), options);
  EXPECT_TRUE(is_call(root, "my.module", "Thing"));
  EXPECT_EQ(pickle::write(root), to_bytes(kProto + body));
  EXPECT_EQ(read_outcome(global_opcode("os", "system") + ".", options), "PickleGlobal")
      << "blocked modules stay blocked";
}

TEST(PickleReader, SharedValuesAreOneNode) {
  const pickle::Ref root = pickle::read(to_bytes(kProto + "]q\0(]q\1h\1e."s));
  EXPECT_EQ(root->items.at(0), root->items.at(1));
}

// CPython writes these for l = []; l.append(l), for a dict in a tuple of its own, for a list in a dict in the
// list, and for two lists that hold each other and that a third one holds.
TEST(PickleReader, KeepsValuesThatHoldThemselves) {
  pickle::ReadOptions options;
  options.cycles = true;
  for (const std::string& body :
       {"]q\0h\0a."s, "}q\0K\1h\0\x85q\1s."s, "]q\0}q\1K\1h\0sa."s, "]q\0(]q\1]q\2(h\1K\1eah\1e."s}) {
    EXPECT_EQ(read_outcome(body), "PickleType") << "without cycles";
    const pickle::Ref root = pickle::read(to_bytes(kProto + body), options);
    EXPECT_EQ(pickle::write(root), to_bytes(kProto + body));
  }
  const pickle::Ref root = pickle::read(to_bytes(kProto + "]q\0}q\1K\1h\0sa."s), options);
  const pickle::Ref inner = root->items.at(0)->pairs[0].second;
  EXPECT_EQ(inner->kind, pickle::Kind::enclosing);
  EXPECT_EQ(inner->integer, 2);
  EXPECT_EQ(outcome([&] { pickle::write(inner); }), "PickleType") << "alone, it has no value to stand for";
  EXPECT_EQ(read_outcome("]q\0h\0\x85q\1h\0K\1a\x87."s, options), "PickleType")
      << "a tuple holds the list, which is changed";
  EXPECT_EQ(read_outcome("]q\0h\0\x85q\1h\0h\0a\x87."s, options), "PickleType") << "a tuple holds it too";
}

TEST(PickleReader, HonoursItsLimits) {
  pickle::ReadOptions options;
  options.limits.pickle_ops = 3;
  EXPECT_EQ(read_outcome("NN\x86.", options), "LimitExceeded");
  options = {};
  options.limits.pickle_string_bytes = 2;
  EXPECT_EQ(read_outcome(unicode("abc") + ".", options), "LimitExceeded");
  options = {};
  options.limits.pickle_bytes = 4;
  EXPECT_EQ(read_outcome("NN\x86.", options), "LimitExceeded");
  options = {};
  options.limits.pickle_stack = 2;
  EXPECT_EQ(read_outcome("NNN\x87.", options), "LimitExceeded");
}

// Callers pass Kind::bytes for new files; the reader keeps the call that CPython wrote.
TEST(PickleWriter, BytesAreAnEncodedString) {
  const pickle::Ref bytes = pickle::make_node(pickle::Kind::bytes);
  bytes->text = "a\xff";
  const auto written = pickle::write(bytes);
  EXPECT_EQ(written, to_bytes(kProto + kEncode + "q\0"s + unicode("a\xc3\xbf") + "q\1"s + unicode("latin1") +
                              "q\2\x86q\3Rq\4."s));
}

TEST(PickleWriter, RefusesWhatItCannotSpell) {
  EXPECT_EQ(outcome([] { pickle::write(pickle::global("no\nmodule", "name")); }), "PickleGlobal");
  pickle::Ref deep = pickle::list({});
  for (int i = 0; i < 1500; ++i) deep = pickle::list({deep});
  EXPECT_EQ(outcome([&] { pickle::write(deep); }), "LimitExceeded");
}

// torch/_weights_only_unpickler.py, 2.13, knows 144 names, 46 of them dtypes; the others here are torchao's.
TEST(PickleGlobals, HoldTheNamesOfTorchAndTorchao) {
  for (const char* name : {"float32", "uint7", "bits4x2", "per_channel_affine_float_qparams"}) {
    EXPECT_TRUE(pickle::known_global("torch", name)) << name;
  }
  EXPECT_TRUE(pickle::known_global("__builtin__", "set"));
  EXPECT_TRUE(pickle::known_global("torchao.quantization", "Int8Tensor"));
  EXPECT_TRUE(pickle::known_global("torchao.dtypes.affine_quantized_tensor", "AffineQuantizedTensor"));
  EXPECT_TRUE(pickle::known_global("torchao.prototype.quantization.int4", "Int4OpaqueTensor"));
  EXPECT_FALSE(pickle::known_global("torchao.quantization.quant_api", "quantize_"));
  EXPECT_FALSE(pickle::known_global("torch.nn.modules.linear", "Linear"));
  EXPECT_TRUE(pickle::known_global("builtins", "bytes"));
  EXPECT_FALSE(pickle::known_global("builtins", "frozenset"));
  EXPECT_FALSE(pickle::known_global("numpy", "dtype"));
}

// A class listed twice in a module would hide a typing error in the table.
TEST(PickleGlobals, TorchaoModulesAndNamesAreUnique) {
  std::set<std::string> seen;
  for (const auto& table : {pickle::torchao_classes(), pickle::torchao_functions()}) {
    for (const pickle::ModuleNames& group : table) {
      EXPECT_TRUE(group.module.starts_with("torchao.")) << group.module;
      for (size_t first = 0; first < group.names.size();) {
        const size_t end = std::min(group.names.find(' ', first), group.names.size());
        const std::string name(group.names.substr(first, end - first));
        EXPECT_FALSE(name.empty()) << group.module;
        EXPECT_TRUE(seen.insert(std::string(group.module) + "." + name).second)
            << group.module << "." << name;
        first = end + 1;
      }
    }
  }
}

}  // namespace
}  // namespace qcts

#include "core/record/frame_record.h"

namespace cutaway::record {
namespace {

constexpr ObjectKind kKinds[] = {
    {"none", "", 0, "None"},
    {"true", "", 0, "True"},
    {"false", "", 0, "False"},
    {"ellipsis", "", 0, "..."},
    {"not_implemented", "", 0, "NotImplemented"},
    {"int", "T", 0, "text: hexadecimal, with its sign"},
    {"float", "T", 0, "text: as float.hex() writes it"},
    {"complex", "I", 2, "two floats"},
    {"str", "t", 0, "text"},
    {"bytes", "B", 0, "blob"},
    {"bytearray", "B", 0, "blob"},
    {"tuple", "i", kAny, ""},
    {"list", "i", kAny, ""},
    {"set", "i", kAny, "in the order of iteration"},
    {"frozenset", "i", kAny, ""},
    {"deque", "it", kAny, "text: its greatest length, where it has one"},
    {"dict", "i", kPairs, "key, value, …"},
    {"ordered_dict", "i", kPairs, ""},
    {"defaultdict", "ic", kPairs, "content: the factory"},
    {"mappingproxy", "C", 0, "content: the dict"},
    {"slice", "I", 3, "start, stop, step"},
    {"range", "I", 3, "start, stop, step"},
    {"size", "i", kAny, "torch.Size"},
    {"dtype", "T", 0, "text: its name in torch"},
    {"device", "T", 0, ""},
    {"layout", "T", 0, ""},
    {"memory_format", "T", 0, ""},
    {"operator", "T", 0, "an operator of torch's dispatcher: aten::add.Tensor"},
    {"tensor", "Xaty", 0, "text: parameter or buffer; attributes: its __dict__"},
    {"import", "Mn", 0, "the object of that name in an installed module; without a name the module"},
    {"module", "NS", 0, "a module of the user's: its name, and the names of it that the code uses"},
    {"namespace", "ni", kPairs, "globals of a module of the user's: the names that the code uses"},
    {"library_namespace", "M", 0, "globals of an installed module"},
    {"code", "Btn", 0, "blob: marshalled; name, and file:line as text"},
    {"function", "NKSmideat", kAny, "items: cells of the closure; name: qualified; text: __name__"},
    {"cell", "i", kAny, "one item, or none: empty"},
    {"method", "I", 2, "function, self"},
    {"builtin_method", "NI", 1, "a method of C, bound to the item"},
    {"partial", "I", 3, "function, tuple, dict"},
    {"compiled", "I", 1, "a function that cutaway.compile() gave: what it compiles"},
    {"disabled", "I", 1, "a function that cutaway.disable() gave"},
    {"tuple_getter", "I", 2, "a field of a named tuple: its position, its text"},
    {"staticmethod", "I", 1, ""},
    {"classmethod", "I", 1, ""},
    {"property", "I", 4, "getter, setter, deleter, text; none where there is none"},
    {"class", "NTmIYA", kAny, "items: bases; type: metaclass; name: qualified; text: __name__"},
    {"enum_class", "NTmIi", kAny, "a class of named values: its base, then name, value, …"},
    {"enum_member", "NY", 0, "a named value of the class"},
    {"instance", "Yaci", kPairs, "items: name, value of slots; content: of a subclass of a container"},
    {"opaque", "TR", 0, "text: its type; because: why it was not recorded. A placeholder stands for it"},
};

}  // namespace

std::span<const ObjectKind> object_kinds() { return kKinds; }

}  // namespace cutaway::record

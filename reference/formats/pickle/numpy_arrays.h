// SPDX-License-Identifier: BSD-3-Clause
// numpy's pickle of an array, in the form in which torch before 2.2 saved a tensor of an XLA device:
// _rebuild_device_tensor_from_numpy(_reconstruct(ndarray, (0,), b"b"), dtype, device, requires_grad).
// The array has the state (1, shape, dtype, is Fortran's order, bytes).
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "reference/formats/pickle/pickle.h"

namespace qcts::pickle {

// Returns true if this function's first argument is a numpy array.
bool takes_numpy_array(std::string_view module, std::string_view name);
// Returns the tuple (array, dtype, device, requires_grad) of a call that rebuilds a numpy array.
// A call of _rebuild_from_type_v2 around such a call counts too. Returns nullptr for any other node.
const Ref* numpy_arguments_of(const Ref& node);

// Throws Refused (PickleGlobal) if a numpy array, or a part of one, is anywhere but in that argument.
// Names in `allowed`, "module.name", are exempt.
void check_numpy_parts(const Ref& root, const std::unordered_set<std::string>& allowed);

}  // namespace qcts::pickle

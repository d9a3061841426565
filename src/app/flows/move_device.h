// A bundle as if it had been recorded on another device.
#pragma once
#include <string_view>

#include "core/bundle/bundle.h"

namespace cutaway::flows {

/// Types, device arguments, default random generators and inputs of the graph: all on `device` ("cpu", "cuda", "cuda:1"). States of random generators of other kinds of
/// devices mean nothing there: the seed counts. Refuses what names no device.
base::Status move_to_device(bundle::Bundle&, std::string_view device);

}  // namespace cutaway::flows

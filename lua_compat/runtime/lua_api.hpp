// The C interface of Lua. What raises an error in it leaves by way of the unwinder: between a call
// that may raise one and the function that Lua called, no object may need its destructor.
#pragma once

// Apart from our own warnings: these are another's headers.
#include <lua.hpp>

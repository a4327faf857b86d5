// Keeps libfabric from reading the kernel's symbol table for a provider that is not used.
#pragma once

#include <cstdint>

namespace score::pm::fi {

// Returns true if a libfabric of this version reads the table for its provider `verbs` although
// FI_PROVIDER excludes that provider. `providers` is the value of FI_PROVIDER, null if it is not
// set. If in doubt, returns false.
[[nodiscard]] bool reads_symbols_in_vain(std::uint32_t version, const char* providers);

// Prevents the library that contains the code at `caller` from opening the kernel's symbol table
// until show_kernel_symbols() is called. Does nothing if the library does not import fopen(), or if
// the table is hidden already. Neither function may run concurrently with itself or the other;
// libfabric holds a lock during the calls.
void hide_kernel_symbols(const void* caller);

// Does nothing if the table is not hidden.
void show_kernel_symbols();

}  // namespace score::pm::fi

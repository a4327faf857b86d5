// Keeps libfabric from reading the kernel's symbol table for a provider that is not used.
#pragma once

#include <cstdint>

namespace score::pm::fi {

// Whether a libfabric of this version reads the table for its provider `verbs` while FI_PROVIDER,
// which has this value (null: it is not set), excludes that provider. In doubt it does not.
[[nodiscard]] bool reads_symbols_in_vain(std::uint32_t version, const char* providers);

// From now on the library that contains the code at `caller` cannot open the kernel's symbol table,
// until show_kernel_symbols(). Does nothing if the library does not import fopen(), or is hidden
// already. Not safe beside other calls of these two; libfabric holds a lock meanwhile.
void hide_kernel_symbols(const void* caller);

// Does nothing if nothing is hidden.
void show_kernel_symbols();

}  // namespace score::pm::fi

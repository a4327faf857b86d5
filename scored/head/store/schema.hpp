#pragma once
// The schema of the head's database. Its version is the number of migrations that made it, and is
// stored as SQLite's user_version.

#include "base/result.hpp"
#include "scored/head/store/sqlite.hpp"

#include <cstdint>

namespace score::head {

// debian/rules reads this number, so that a package is refused if its head cannot read the
// database.
inline constexpr std::uint32_t kSchemaVersion = 26;

// Checks that this program can read the database; changes nothing. Errors: Malformed (the database
// belongs to a different program, to a newer version of this one, or is damaged).
[[nodiscard]] Status check_database(const Database& database);

// Runs the migrations that the database lacks, in one transaction; an empty database gets all of
// them. After an error or a crash the database is unchanged. Any other database must have passed
// check_database().
[[nodiscard]] Status migrate(Database& database);

}  // namespace score::head

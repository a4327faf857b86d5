// Defines the protocol between clients and servers of a volume; docs/reference/pario.md has the
// tables. All numbers are little-endian. A request is a header of 32 bytes, a body whose fields
// depend on the operation, and data; a reply has the same form. Requests may be answered in any
// order.
#pragma once

#include "pario/core/bytes.hpp"
#include "pario/core/layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::pario {

inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::size_t kMaxNameBytes = 255;
inline constexpr std::size_t kMaxExtents = 1'024;  // per request
inline constexpr std::size_t kMaxBodyBytes = kMaxExtents * 20 + 2 * (kMaxNameBytes + 2) + 64;
inline constexpr std::size_t kMaxDataBytes = std::size_t{1} << 20;
// These are the numbers of requests of a connection that a client has in flight, and that a server
// accepts before it stops reading. The server accepts more, so a client that respects its limit is
// always read.
inline constexpr std::size_t kClientWindow = 8;
inline constexpr std::size_t kServerWindow = 16;
static_assert(kClientWindow < kServerWindow);

enum class Op : std::uint16_t {
  Lookup = 1,       // name in id: the entry, and attributes if this server is its home
  Create,           // name in id: a new file or directory with `mode`, or the existing one
  Unlink,           // name in id; if `number` is set, only if it is still that file
  Insert,           // name in id refers to file `number` with `mode`; returns the replaced one
  Rename,           // name in id becomes name2 in `number`; both entries on this server
  GetAttributes,    // of id: attributes at its home, otherwise those of the data on this server
  SetMode,          // of id to `mode`
  SetTime,          // of id's data here, and of id at its home: `number` and `other`; see `mode`
  SetWide,          // id has data on servers other than its home
  Remove,           // id: attributes at its home and data
  ReadEntries,      // of directory id after `name`, at most one reply's data
  SealDirectory,    // id: ENOTEMPTY if there are entries here, otherwise no more can be created
  UnsealDirectory,  // id
  Truncate,         // id's data here to `number` bytes
  Read,             // extents of id's data here
  Write,            // data to extents of id's data here
  Sync,             // id's data here and all attributes here are stable
  Reserve,          // `number` bytes after the end of id; `other` is the end the client has seen
  Statistics,
  // Transactions, core/transactions.hpp; `number` is the transaction.
  StageTransaction,    // message `mode`: data written to extents of id, or read there with stamp
                       // `other`
  PrepareTransaction,  // `mode` messages were staged; `other` is the coordinator of `servers`
  DecideTransaction,   // at the coordinator: commit
  FinishTransaction,   // `other` 1: commit, 0: abort
  ReportOutcome,       // from a server to the coordinator; the reply's number is an Outcome
  EndTransaction,      // at the coordinator: all servers have committed
  // Between the replicas of a part, core/replica.hpp.
  Join,       // `number` is the sender's view, the reply's number that of the other one
  FillBegin,  // a follower forgets everything; view `number`
  FillTable,  // table rows of the store; `mode` is the table
  FillEnd,    // the follower has all data, and follows in view `number`
  Destroy,    // the server removes all its data, and exits
  // Inserts file `number` with `mode` as name in id, then unlinks its old name2 in `other` on a
  // different server. The second step is completed even if the client ends.
  Move,
  // The following operations select the path of data.
  OpenChannel,  // a PM context for Read and Write: `mode` is a ChannelKind
  Gather,       // coordinated access to id: answered when all ranks have arrived; see Gathered
  OpenData,     // this server's directory of data, for a client of its node and user
  Lease,        // reserves `number` bytes for direct writes to id; `other` were written
  // LogTransaction sends a record of the leader's log of transactions to the follower of a part.
  LogTransaction,
  // The following operations serve trees of unmodified programs (docs/adr/0128).
  ChangeLinks = 37,  // of id: `number` 1: one name more, 0: one name less; the file stays
  GetValue = 39,     // the value `name` of id; no name: the target of a symbolic link
  SetValue = 41,     // the value `name` of id to the data; `mode` is a ValueChange
  ListValues = 43,   // names of the values of id, each followed by a 0
  Allocate = 45,  // `other` bytes of id's data here from `number` on; `mode` is that of fallocate
  Seek = 47,      // in id's data here from `number` on: `mode` 0: data, 1: a hole
  SetGroup = 49,  // of id to `mode`
  MakeFile = 51,  // a regular file with `mode` without a name, here
  // Between nodes (docs/adr/0137).
  Hold =
      53,  // data: numbers of files that the client `number` has open; see core/homes/nameless.hpp
  Lock = 55,  // of id: data is a LockRequest; see core/waits/file_locks.hpp
  // The following operations keep the times of directories; see core/homes/directory_times.hpp.
  ReportChange = 57,  // from a server to the home of directory id: entries change there
  SettleTime = 59,    // of directory id: `number` is its latest time on the other servers, as of
                      // version `other`
  // Reads the extent of file `other` on server `mode`, and writes it to id from `number` on.
  Copy = 61,
  Last = Copy,
};

// Selects what a SetValue does.
enum class ValueChange : std::uint32_t {
  Set = 0,
  Create = 1,   // EEXIST if there is such a value
  Replace = 2,  // ENODATA if there is none
  Remove = 3,   // ENODATA if there is none
};

inline constexpr std::size_t kMaxValueBytes = 32'768;      // of one value
inline constexpr std::size_t kMaxValueListBytes = 65'536;  // of the names of a file's values
inline constexpr std::size_t kMaxTargetBytes = 4'095;      // of a symbolic link
inline constexpr std::uint32_t kNoGroup = 0xffff'ffff;     // the group of the one who mounts

// Selects the times that a SetTime changes: its `number` and its `other`, in ns since 1970.
inline constexpr std::uint32_t kSetModified = 1;
inline constexpr std::uint32_t kSetAccessed = 2;

// These are the fields of a Gather. `number` is the group.
struct Gathered {
  std::uint32_t sequence = 0;  // high half of `other`
  std::uint32_t size = 0;      // low half of `other`: ranks of the group
  std::uint32_t rank = 0;      // high 20 bits of `mode`
  std::uint32_t error = 0;     // low 12 bits of `mode`: errno of the rank's own part
};

constexpr std::uint64_t pack_other(const Gathered& part) {
  return std::uint64_t{part.sequence} << 32 | part.size;
}

constexpr std::uint32_t pack_mode(const Gathered& part) {
  return part.rank << 12 | (part.error & 0xfff);
}

constexpr Gathered unpack_gathered(std::uint32_t mode, std::uint64_t other) {
  return {static_cast<std::uint32_t>(other >> 32), static_cast<std::uint32_t>(other), mode >> 12,
          mode & 0xfff};
}

// Selects how a PM context reaches the client.
enum class ChannelKind : std::uint32_t {
  Near = 1,  // the memory of the node; the server creates both contexts
  Udp = 2,   // `number` is the client's address, and in its high 16 bits the payload of a frame
             // there
  None = 3,  // a report: the client tried PM and uses TCP, because of errno value `number`
};

// The flags of requests follow.
inline constexpr std::uint16_t kExclusive = 1;  // Create, Insert, Rename: EEXIST if the name exists
inline constexpr std::uint16_t kDirectory = 2;  // Unlink: it must be a directory (otherwise: it
                                                // must not)
inline constexpr std::uint16_t kStable = 8;     // Prepare: survives a loss of power
// A Read with this flag belongs to a transaction: the reply's body is the stamp. EAGAIN: some of
// the data is about to change.
inline constexpr std::uint16_t kStamped = 16;
// The leader of two replicas sends a change to the follower with this flag; see Forwarded.
inline constexpr std::uint16_t kForwarded = 32;
// Rename: both names exist, and each becomes that of the other file. Insert: a step of that, which
// may replace what is not empty, because it has another name.
inline constexpr std::uint16_t kExchange = 256;
// Remove: only if the file has no name.
inline constexpr std::uint16_t kNameless = 512;
// Create, MakeFile: what is made has the layout `local`; see kLocalBit.
inline constexpr std::uint16_t kLocalLayout = 128;
// A change with this flag must not be carried out twice even if it is sent twice; see Once.
inline constexpr std::uint16_t kOnce = 64;
// The client has the file open, or is about to open it, so it may have no name. Without this flag
// such a file is ESTALE, and the client looks its name up again.
inline constexpr std::uint16_t kOpened = 1'024;
// Unlink, Remove: the leader of two replicas keeps the file without a name.
inline constexpr std::uint16_t kKept = 2'048;
// Lookup, GetAttributes: the client is about to open the file, so it is kept for some seconds even
// if the same client removes its name.
inline constexpr std::uint16_t kWillOpen = 8'192;
// Remove: of a file that was kept without a name, and is no longer needed.
inline constexpr std::uint16_t kPurge = 4'096;

// Identifies one of a client's changes. The server keeps the answer to the last change of each slot
// together with the change itself, and returns it again when the request is repeated after a
// failure of the connection or the server (as slots of NFS 4.1 sessions, RFC 8881, 2.10.6). A
// client has one request per slot at a time, and numbers them.
struct Once {
  std::uint64_t client = 0;  // random; the same for a connection and its reconnections; never 0
  std::uint32_t slot = 0;    // less than kServerWindow
  std::uint32_t sequence = 0;
};

bool can_be_once(Op op);

// Holds the choices of the leader, so that the follower does the same.
struct Forwarded {
  std::uint64_t view = 0;
  std::uint64_t sequence = 0;
  FileId new_id = 0;  // of a file to be created; 0: the store chooses
  std::int64_t time_ns = 0;
};

// A Read or Write by PM has this flag: the data is in memory of the client's context, where the
// server reads or writes it. Requests by TCP never have it, requests by PM always do.
inline constexpr std::uint16_t kRemote = 4;

// Describes registered memory of a PM context, as pm_handle of pm.h does.
struct RemoteMemory {
  std::uint32_t region = 0;
  std::uint32_t nonce = 0;
  std::uint64_t offset = 0;  // offset + length does not wrap
  std::uint64_t length = 0;
};

struct Request {
  Op op = Op::Lookup;
  std::uint16_t flags = 0;
  std::uint64_t tag = 0;  // chosen by the client and repeated in the reply
  FileId id = 0;
  // A part of the volume, from 1, because a server that has copies serves several parts. 0: the
  // server's own part.
  std::uint32_t part = 0;
  Forwarded forwarded{};  // with kForwarded
  Once once{};            // with kOnce
  std::uint32_t mode = 0;
  std::uint64_t number = 0;
  std::uint64_t other = 0;
  std::string_view name{};  // name and name2 are views into the bytes that were read
  std::string_view name2{};
  std::vector<Extent> extents{};         // each at most kMaxDataBytes
  std::vector<std::uint16_t> servers{};  // ascending
  std::uint32_t data_bytes = 0;  // Write, StageTransaction: sum of the extents; see takes_data()
  RemoteMemory remote{};         // kRemote
  std::vector<std::uint64_t> places{};  // kRemote: of each extent, from remote.offset on
};

// Returns true if a request of this kind has data.
bool takes_data(Op op);

// Appends header and body. The request must satisfy the rules of parse_request().
void append_request(const Request& request, std::string& bytes);

// Holds the sizes of a request, from its header. parse_sizes() returns false if there is no such
// operation, or a size is beyond its limit.
struct Sizes {
  std::uint32_t body = 0;
  std::uint32_t data = 0;
};

bool parse_sizes(std::span<const char, kHeaderBytes> header, Sizes& sizes);

// Parses header and body of a request; `bytes` has kHeaderBytes + sizes.body bytes. Returns false
// if a field is invalid (a name with '/' or 0, "." or "..", an extent beyond kMaxOffset, ...), or
// if the body has more or less than the operation's fields. The views point into `bytes`.
bool parse_request(std::string_view bytes, Request& request);

// Returns true for 1 to 255 bytes without '/' and 0, except "." and "..".
bool is_valid_name(std::string_view name);

struct Reply {
  std::uint32_t error = 0;  // errno
  std::uint32_t body_bytes = 0;
  std::uint32_t data_bytes = 0;
  std::uint32_t zero = 0;
  std::uint64_t tag = 0;
  std::uint64_t number = 0;
};

inline constexpr std::size_t kMaxReplyBodyBytes = 128;

// Returns false if a size is beyond its limit.
bool parse_reply(std::span<const char, kHeaderBytes> bytes, Reply& reply);

// The bodies of replies are structures. put() appends them.
template <typename T>
bool parse_body(std::string_view bytes, T& body) {
  Cursor cursor{bytes};
  cursor.take(body);
  return cursor.is_done();
}

// This is the body of replies to Lookup, Create, Unlink, Insert, Rename, GetAttributes and Remove.
struct Attributes {
  FileId id = 0;             // 0: there was no file (Insert, Rename)
  std::uint32_t mode = 0;    // type and permissions; 0: this server is not the home of id
  std::uint32_t wide = 0;    // 1: there is, or was, data beyond chunk 0; of a directory: the other
                             // servers must be asked for its time
  std::uint64_t size = 0;    // of the data here; of a directory: the version for SettleTime
  std::uint64_t blocks = 0;  // of 512 bytes, of the data here
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  std::int64_t accessed_ns = 0;  // as set by a program
  std::uint32_t group = kNoGroup;
  std::uint32_t links = 0;  // names; in replies to Unlink and Remove: those that are left
};

// Returns false also if the size is beyond kMaxOffset.
bool parse_body(std::string_view bytes, Attributes& attributes);

// An entry is part of the data of replies to ReadEntries.
struct Entry {
  FileId id = 0;
  std::uint32_t mode = 0;  // file type; permissions are in the attributes
  std::string name;
};

void append_entry(FileId id, std::uint32_t mode, std::string_view name, std::string& bytes);
bool parse_entries(std::string_view bytes, std::vector<Entry>& entries);

// This is the body of replies to Statistics.
struct Statistics {
  std::uint64_t capacity = 0;
  std::uint64_t used = 0;
  std::uint64_t files = 0;     // whose home is this server, including directories
  std::uint64_t requests = 0;  // since the start
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t refused_keys = 0;      // connections without the volume's key
  std::uint64_t refused_requests = 0;  // connections closed for a malformed request
  std::uint64_t refused_slow = 0;      // connections closed because they did not read or shake
                                       // hands in time
  std::uint64_t queue = 0;             // requests without a reply, without this one
  std::uint64_t pm_bytes = 0;          // of the data read and written: moved by PM
  std::uint64_t pm_clients = 0;        // connections whose data uses PM now
  std::uint64_t tcp_fallbacks = 0;     // connections that tried PM and use TCP
};

// This is the body of replies to OpenChannel. Numbers of processes and descriptors are valid only
// on the server's node, so the client must check the objects that it finds there.
struct ChannelOffer {
  std::uint64_t key = 0;             // of both contexts
  std::uint64_t address = 0;         // Udp: the server's; see pack_address()
  std::uint32_t process = 0;         // Near: of the server
  std::uint32_t server_context = 0;  // Near: its descriptors
  std::uint32_t client_context = 0;
  std::uint32_t payload = 0;  // Udp: of a frame, upper limit of the path between both
};

// This is the body of replies to OpenData. The rules of ChannelOffer apply.
struct DataPlace {
  std::uint32_t process = 0;
  std::uint32_t directory = 0;  // its descriptor
  std::uint64_t device = 0;     // of the directory
  std::uint64_t inode = 0;
};

// The server keeps a lease for this time if it is not renewed. The client uses it for half of that.
inline constexpr std::int64_t kLeaseMs = 2'000;

// An IPv4 address and port, in network byte order, are packed into one number.
using AddressBytes = std::array<std::uint8_t, 6>;
std::uint64_t pack_address(const AddressBytes& address);
AddressBytes unpack_address(std::uint64_t packed);  // of the low 48 bits

// --- Handshake: the server greets, then the client and the server prove that they have the key.
// ---

using Nonce = std::array<char, 16>;
using Key = std::array<char, 16>;
using Proof = std::array<char, 16>;
inline constexpr std::string_view kMagic{"PARIO\4\0\0", 8};
inline constexpr std::size_t kGreetingBytes = 24;  // kMagic, nonce
inline constexpr std::size_t kAnswerBytes = 40;    // kMagic, nonce, proof
inline constexpr std::size_t kWelcomeBytes = 16;   // proof

// `by_client` distinguishes the two proofs. `server` and `volume` prevent a proof from being used
// at a different server.
struct ProofOf {
  Nonce server_nonce{};
  Nonce client_nonce{};
  std::uint32_t server = 0;
  std::string_view volume;
  bool by_client = false;
};

Proof make_proof(const Key& key, const ProofOf& of);
// The comparison takes a time that does not depend on the bytes.
bool is_equal(const Proof& a, const Proof& b);

}  // namespace score::pario

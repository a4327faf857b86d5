// Implements the functions of libfabric's tables for remote memory and atomics: they fill in
// AccessArgs and AtomicArgs. The remote side of an atomic is one range of memory; lists of several
// are refused.
#include "pmlib/fi/endpoint/atomics.hpp"
#include "pmlib/fi/endpoint/ep_tables.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

namespace score::pm::fi {

namespace {

Ep& of(fid_ep* ep) {
  return *static_cast<Ep*>(ep);
}

// Describes the remote side of an access.
struct Remote {
  fi_addr_t peer;
  std::uint64_t address;
  std::uint64_t key;
};

AccessArgs args_of(fid_ep* ep, std::span<const iovec> iov, const Remote& remote, void* context) {
  AccessArgs args;
  args.iov = iov;
  args.to = remote.peer;
  args.address = remote.address;
  args.key = remote.key;
  args.context = context;
  args.flags = of(ep).send_flags();
  return args;
}

iovec piece_of(const void* buffer, std::size_t length) {
  return {const_cast<void*>(buffer), length};
}

// --- remote memory -----------------------------------------------------------------------------

ssize_t read_pieces(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
                    std::uint64_t address, std::uint64_t key, void* context) {
  return of(ep).read(args_of(ep, {iov, count}, {from, address, key}, context));
}

ssize_t read(fid_ep* ep, void* buffer, std::size_t length, void*, fi_addr_t from,
             std::uint64_t address, std::uint64_t key, void* context) {
  const iovec iov = piece_of(buffer, length);
  return of(ep).read(args_of(ep, {&iov, 1}, {from, address, key}, context));
}

ssize_t access(fid_ep* ep, const fi_msg_rma* m, std::uint64_t flags, bool is_read) {
  AccessArgs args;
  args.iov = {m->msg_iov, m->iov_count};
  args.to = m->addr;
  args.data = m->data;
  args.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
  args.context = m->context;
  args.flags = flags;
  const std::span ranges(m->rma_iov, m->rma_iov_count);
  if (ranges.size() != 1) return of(ep).access(args, ranges, is_read);
  args.address = ranges[0].addr;
  args.key = ranges[0].key;
  return is_read ? of(ep).read(args) : of(ep).write(args);
}

ssize_t read_message(fid_ep* ep, const fi_msg_rma* m, std::uint64_t flags) {
  return access(ep, m, flags, true);
}

ssize_t write_pieces(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                     std::uint64_t address, std::uint64_t key, void* context) {
  return of(ep).write(args_of(ep, {iov, count}, {to, address, key}, context));
}

ssize_t write(fid_ep* ep, const void* buffer, std::size_t length, void*, fi_addr_t to,
              std::uint64_t address, std::uint64_t key, void* context) {
  const iovec iov = piece_of(buffer, length);
  return of(ep).write(args_of(ep, {&iov, 1}, {to, address, key}, context));
}

ssize_t write_message(fid_ep* ep, const fi_msg_rma* m, std::uint64_t flags) {
  return access(ep, m, flags, false);
}

ssize_t inject_write(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to,
                     std::uint64_t address, std::uint64_t key) {
  const iovec iov = piece_of(buffer, length);
  AccessArgs args = args_of(ep, {&iov, 1}, {to, address, key}, nullptr);
  args.is_silent = true;
  return of(ep).write(args);
}

ssize_t write_data(fid_ep* ep, const void* buffer, std::size_t length, void*, std::uint64_t data,
                   fi_addr_t to, std::uint64_t address, std::uint64_t key, void* context) {
  const iovec iov = piece_of(buffer, length);
  AccessArgs args = args_of(ep, {&iov, 1}, {to, address, key}, context);
  args.data = data;
  args.has_data = true;
  return of(ep).write(args);
}

ssize_t inject_write_data(fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data,
                          fi_addr_t to, std::uint64_t address, std::uint64_t key) {
  const iovec iov = piece_of(buffer, length);
  AccessArgs args = args_of(ep, {&iov, 1}, {to, address, key}, nullptr);
  args.data = data;
  args.has_data = true;
  args.is_silent = true;
  return of(ep).write(args);
}

// --- atomics -----------------------------------------------------------------------------------

// Converts pieces from counts of elements to bytes.
struct Pieces {
  std::array<iovec, kMaxIov> iov{};
  std::size_t pieces = 0;
  std::size_t elements = 0;

  Pieces() = default;

  Pieces(const fi_ioc* ioc, std::size_t count, std::size_t each)
      : pieces(ioc == nullptr ? 0 : count) {
    for (std::size_t i = 0; i < pieces && i < kMaxIov; ++i) {
      iov[i] = {ioc[i].addr, ioc[i].count * each};
      elements += ioc[i].count;
    }
  }

  std::span<const iovec> span() const { return {iov.data(), pieces}; }
};

using Elements = std::span<const fi_ioc>;

struct AtomicCall {
  AtomicForm form = AtomicForm::Plain;
  Remote remote{};
  fi_datatype datatype = FI_INT8;
  fi_op operation = FI_SUM;
  Elements operand;
  Elements compare;
  Elements result;
  bool is_silent = false;
  void* context = nullptr;
  std::uint64_t flags = 0;
};

ssize_t run(fid_ep* ep, const AtomicCall& call) {
  const std::size_t each = atomic_bytes(call.form, call.operation, call.datatype);
  if (each == 0) return -FI_EOPNOTSUPP;
  if (std::max({call.operand.size(), call.compare.size(), call.result.size()}) > kMaxIov) {
    return -FI_EINVAL;
  }
  const Pieces operand(call.operand.data(), call.operand.size(), each);
  const Pieces compare(call.compare.data(), call.compare.size(), each);
  const Pieces result(call.result.data(), call.result.size(), each);
  AtomicArgs args;
  args.access = args_of(ep, operand.span(), call.remote, call.context);
  args.access.is_silent = call.is_silent;
  args.access.flags = call.flags;
  args.form = call.form;
  args.operation = call.operation;
  args.datatype = call.datatype;
  args.count = call.operation == FI_ATOMIC_READ ? result.elements : operand.elements;
  args.compare = compare.span();
  args.result = result.span();
  return of(ep).atomic(args);
}

AtomicCall call_of(fid_ep* ep, const Remote& remote, fi_datatype datatype, fi_op operation) {
  AtomicCall call;
  call.remote = remote;
  call.datatype = datatype;
  call.operation = operation;
  call.flags = of(ep).send_flags();
  return call;
}

fi_ioc elements_of(const void* buffer, std::size_t count) {
  return {const_cast<void*>(buffer), count};
}

ssize_t atomic_pieces(fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, fi_addr_t to,
                      std::uint64_t address, std::uint64_t key, fi_datatype datatype,
                      fi_op operation, void* context) {
  AtomicCall call = call_of(ep, {to, address, key}, datatype, operation);
  call.operand = {iov, count};
  call.context = context;
  return run(ep, call);
}

ssize_t atomic(fid_ep* ep, const void* buffer, std::size_t count, void*, fi_addr_t to,
               std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op operation,
               void* context) {
  const fi_ioc ioc = elements_of(buffer, count);
  return atomic_pieces(ep, &ioc, nullptr, 1, to, address, key, datatype, operation, context);
}

bool fill(AtomicCall& call, const fi_msg_atomic* m, std::uint64_t flags) {
  if (m->rma_iov_count != 1) return false;
  call.remote = {m->addr, m->rma_iov[0].addr, m->rma_iov[0].key};
  call.datatype = m->datatype;
  call.operation = m->op;
  call.operand = {m->msg_iov, m->msg_iov == nullptr ? 0 : m->iov_count};
  call.context = m->context;
  call.flags = flags;
  return true;
}

ssize_t atomic_message(fid_ep* ep, const fi_msg_atomic* m, std::uint64_t flags) {
  AtomicCall call;
  return fill(call, m, flags) ? run(ep, call) : -FI_EINVAL;
}

ssize_t inject_atomic(fid_ep* ep, const void* buffer, std::size_t count, fi_addr_t to,
                      std::uint64_t address, std::uint64_t key, fi_datatype datatype,
                      fi_op operation) {
  const fi_ioc ioc = elements_of(buffer, count);
  AtomicCall call = call_of(ep, {to, address, key}, datatype, operation);
  call.operand = {&ioc, 1};
  call.is_silent = true;
  return run(ep, call);
}

ssize_t fetch_pieces(fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, fi_ioc* result,
                     void**, std::size_t results, fi_addr_t to, std::uint64_t address,
                     std::uint64_t key, fi_datatype datatype, fi_op operation, void* context) {
  AtomicCall call = call_of(ep, {to, address, key}, datatype, operation);
  call.form = AtomicForm::Fetch;
  call.operand = {iov, count};
  call.result = {result, results};
  call.context = context;
  return run(ep, call);
}

ssize_t fetch(fid_ep* ep, const void* buffer, std::size_t count, void*, void* result, void*,
              fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype datatype,
              fi_op operation, void* context) {
  const fi_ioc ioc = elements_of(buffer, count);
  fi_ioc back{result, count};
  return fetch_pieces(ep, &ioc, nullptr, 1, &back, nullptr, 1, to, address, key, datatype,
                      operation, context);
}

ssize_t fetch_message(fid_ep* ep, const fi_msg_atomic* m, fi_ioc* result, void**,
                      std::size_t results, std::uint64_t flags) {
  AtomicCall call;
  call.form = AtomicForm::Fetch;
  call.result = {result, results};
  return fill(call, m, flags) ? run(ep, call) : -FI_EINVAL;
}

ssize_t compare_pieces(fid_ep* ep, const fi_ioc* iov, void**, std::size_t count,
                       const fi_ioc* compare, void**, std::size_t compares, fi_ioc* result, void**,
                       std::size_t results, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                       fi_datatype datatype, fi_op operation, void* context) {
  AtomicCall call = call_of(ep, {to, address, key}, datatype, operation);
  call.form = AtomicForm::Compare;
  call.operand = {iov, count};
  call.compare = {compare, compares};
  call.result = {result, results};
  call.context = context;
  return run(ep, call);
}

ssize_t compare(fid_ep* ep, const void* buffer, std::size_t count, void*, const void* comparand,
                void*, void* result, void*, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                fi_datatype datatype, fi_op operation, void* context) {
  const fi_ioc ioc = elements_of(buffer, count);
  const fi_ioc with = elements_of(comparand, count);
  fi_ioc back{result, count};
  return compare_pieces(ep, &ioc, nullptr, 1, &with, nullptr, 1, &back, nullptr, 1, to, address,
                        key, datatype, operation, context);
}

ssize_t compare_message(fid_ep* ep, const fi_msg_atomic* m, const fi_ioc* compare, void**,
                        std::size_t compares, fi_ioc* result, void**, std::size_t results,
                        std::uint64_t flags) {
  AtomicCall call;
  call.form = AtomicForm::Compare;
  call.compare = {compare, compares};
  call.result = {result, results};
  return fill(call, m, flags) ? run(ep, call) : -FI_EINVAL;
}

int valid(fid_ep* ep, fi_datatype datatype, fi_op operation, std::size_t* count) {
  return of(ep).atomic_count(AtomicForm::Plain, datatype, operation, count);
}

int fetch_valid(fid_ep* ep, fi_datatype datatype, fi_op operation, std::size_t* count) {
  return of(ep).atomic_count(AtomicForm::Fetch, datatype, operation, count);
}

int compare_valid(fid_ep* ep, fi_datatype datatype, fi_op operation, std::size_t* count) {
  return of(ep).atomic_count(AtomicForm::Compare, datatype, operation, count);
}

}  // namespace

fi_ops_rma access_table = {
    sizeof(fi_ops_rma), read,          read_pieces,  read_message, write,
    write_pieces,       write_message, inject_write, write_data,   inject_write_data};
fi_ops_atomic atomic_table = {
    sizeof(fi_ops_atomic), atomic,        atomic_pieces, atomic_message, inject_atomic,   fetch,
    fetch_pieces,          fetch_message, compare,       compare_pieces, compare_message, valid,
    fetch_valid,           compare_valid};

}  // namespace score::pm::fi

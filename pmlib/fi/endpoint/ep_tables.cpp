// Implements the functions of libfabric's message tables: each fills in SendArgs or ReceiveArgs.
#include "pmlib/fi/endpoint/ep_tables.hpp"

#include <cerrno>

namespace score::pm::fi {

namespace {

Ep& of(fid_ep* ep) {
  return *static_cast<Ep*>(ep);
}

std::span<const iovec> span_of(const iovec* iov, std::size_t count) {
  return {iov, count};
}

// --- endpoint and names ------------------------------------------------------------------------

Ep& of(fid* f) {
  return object_of<Ep>(f);
}

ssize_t cancel(fid* f, void* context) {
  return of(f).cancel(context);
}

int get_option(fid* f, int, int name, void* value, std::size_t* length) {
  return of(f).get_option(name, value, length);
}

int set_option(fid* f, int, int name, const void* value, std::size_t length) {
  return of(f).set_option(name, value, length);
}

int get_name(fid* f, void* address, std::size_t* length) {
  return of(f).name(address, length);
}

fi_ops_ep ep_table = {
    sizeof(fi_ops_ep), cancel, get_option, set_option, no_op, no_op, no_op, no_op};
fi_ops_cm name_table = {
    sizeof(fi_ops_cm), no_op, get_name, no_op, no_op, no_op, no_op, no_op, no_op, no_op};

// --- receiving ---------------------------------------------------------------------------------

ssize_t receive(fid_ep* ep, void* buffer, std::size_t length, void*, fi_addr_t from,
                void* context) {
  const iovec iov{buffer, length};
  return of(ep).receive(
      {MessageKind::Send, {&iov, 1}, from, 0, 0, context, of(ep).receive_flags()});
}

ssize_t receive_pieces(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
                       void* context) {
  return of(ep).receive(
      {MessageKind::Send, span_of(iov, count), from, 0, 0, context, of(ep).receive_flags()});
}

ssize_t receive_message(fid_ep* ep, const fi_msg* m, std::uint64_t flags) {
  return of(ep).receive(
      {MessageKind::Send, span_of(m->msg_iov, m->iov_count), m->addr, 0, 0, m->context, flags});
}

ssize_t tagged_receive(fid_ep* ep, void* buffer, std::size_t length, void*, fi_addr_t from,
                       std::uint64_t tag, std::uint64_t ignore, void* context) {
  return of(ep).receive_one({.peer = from, .tag = tag}, ignore, {buffer, length}, context);
}

ssize_t tagged_receive_pieces(fid_ep* ep, const iovec* iov, void**, std::size_t count,
                              fi_addr_t from, std::uint64_t tag, std::uint64_t ignore,
                              void* context) {
  return of(ep).receive({MessageKind::Tagged, span_of(iov, count), from, tag, ignore, context,
                         of(ep).receive_flags()});
}

ssize_t tagged_receive_message(fid_ep* ep, const fi_msg_tagged* m, std::uint64_t flags) {
  return of(ep).receive({MessageKind::Tagged, span_of(m->msg_iov, m->iov_count), m->addr, m->tag,
                         m->ignore, m->context, flags});
}

// --- sending -----------------------------------------------------------------------------------

SendArgs args_of(fid_ep* ep, MessageKind kind, const iovec& iov, fi_addr_t to) {
  SendArgs args;
  args.kind = kind;
  args.iov = {&iov, 1};
  args.to = to;
  args.flags = of(ep).send_flags();
  return args;
}

iovec piece_of(const void* buffer, std::size_t length) {
  return {const_cast<void*>(buffer), length};
}

ssize_t send(fid_ep* ep, const void* buffer, std::size_t length, void*, fi_addr_t to,
             void* context) {
  const iovec iov = piece_of(buffer, length);
  SendArgs args = args_of(ep, MessageKind::Send, iov, to);
  args.context = context;
  return of(ep).send(args);
}

ssize_t send_pieces(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                    void* context) {
  SendArgs args = args_of(ep, MessageKind::Send, *iov, to);
  args.iov = span_of(iov, count);
  args.context = context;
  return of(ep).send(args);
}

ssize_t send_message(fid_ep* ep, const fi_msg* m, std::uint64_t flags) {
  SendArgs args;
  args.iov = span_of(m->msg_iov, m->iov_count);
  args.to = m->addr;
  args.data = m->data;
  args.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
  args.context = m->context;
  args.flags = flags;
  return of(ep).send(args);
}

ssize_t inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to) {
  return of(ep).inject({.kind = MessageKind::Send, .peer = to}, buffer, length);
}

ssize_t send_data(fid_ep* ep, const void* buffer, std::size_t length, void*, std::uint64_t data,
                  fi_addr_t to, void* context) {
  const iovec iov = piece_of(buffer, length);
  SendArgs args = args_of(ep, MessageKind::Send, iov, to);
  args.data = data;
  args.has_data = true;
  args.context = context;
  return of(ep).send(args);
}

ssize_t inject_data(fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data,
                    fi_addr_t to) {
  return of(ep).inject({.kind = MessageKind::Send, .peer = to, .data = data, .has_data = true},
                       buffer, length);
}

ssize_t tagged_send(fid_ep* ep, const void* buffer, std::size_t length, void*, fi_addr_t to,
                    std::uint64_t tag, void* context) {
  const iovec iov = piece_of(buffer, length);
  SendArgs args = args_of(ep, MessageKind::Tagged, iov, to);
  args.tag = tag;
  args.context = context;
  return of(ep).send(args);
}

ssize_t tagged_send_pieces(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                           std::uint64_t tag, void* context) {
  SendArgs args = args_of(ep, MessageKind::Tagged, *iov, to);
  args.iov = span_of(iov, count);
  args.tag = tag;
  args.context = context;
  return of(ep).send(args);
}

ssize_t tagged_send_message(fid_ep* ep, const fi_msg_tagged* m, std::uint64_t flags) {
  SendArgs args;
  args.kind = MessageKind::Tagged;
  args.iov = span_of(m->msg_iov, m->iov_count);
  args.to = m->addr;
  args.tag = m->tag;
  args.data = m->data;
  args.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
  args.context = m->context;
  args.flags = flags;
  return of(ep).send(args);
}

ssize_t tagged_inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to,
                      std::uint64_t tag) {
  return of(ep).inject({.peer = to, .tag = tag}, buffer, length);
}

ssize_t tagged_send_data(fid_ep* ep, const void* buffer, std::size_t length, void*,
                         std::uint64_t data, fi_addr_t to, std::uint64_t tag, void* context) {
  const iovec iov = piece_of(buffer, length);
  SendArgs args = args_of(ep, MessageKind::Tagged, iov, to);
  args.tag = tag;
  args.data = data;
  args.has_data = true;
  args.context = context;
  return of(ep).send(args);
}

ssize_t tagged_inject_data(fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data,
                           fi_addr_t to, std::uint64_t tag) {
  return of(ep).inject({.peer = to, .tag = tag, .data = data, .has_data = true}, buffer, length);
}

}  // namespace

fi_ops_msg message_table = {
    sizeof(fi_ops_msg), receive,      receive_pieces, receive_message, send,
    send_pieces,        send_message, inject,         send_data,       inject_data};
fi_ops_tagged tagged_table = {sizeof(fi_ops_tagged),  tagged_receive, tagged_receive_pieces,
                              tagged_receive_message, tagged_send,    tagged_send_pieces,
                              tagged_send_message,    tagged_inject,  tagged_send_data,
                              tagged_inject_data};

void set_tables(fid_ep& ep) {
  ep.ops = &ep_table;
  ep.cm = &name_table;
  ep.msg = &message_table;
  ep.rma = &access_table;
  ep.tagged = &tagged_table;
  ep.atomic = &atomic_table;
}

}  // namespace score::pm::fi
